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
	return identity(c.secrets.ca)
}

// IdentityOf is the Identity of a cluster that need not answer.
func IdentityOf(c Config) (string, error) {
	ca, err := readPEM(c.CAFile, "CERTIFICATE")
	if err != nil {
		return "", err
	}
	return identity(ca), nil
}

func identity(ca string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(ca)))
	return hex.EncodeToString(sum[:])[:identityLength]
}
