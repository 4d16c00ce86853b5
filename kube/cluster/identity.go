package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// identityLength is how many hex digits of the hash name a cluster.
const identityLength = 16

// Identity names the cluster in 16 hex digits: the same wherever the cluster
// moves to, different for two clusters. It is made of the CA's certificate.
func (c *Client) Identity() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := sha256.Sum256([]byte(strings.TrimSpace(c.secrets.ca)))
	return hex.EncodeToString(sum[:])[:identityLength]
}
