package job

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// keyLength is how many hex digits of the hash name a job: 64 bits, far from
// any collision among the jobs of one cluster, short enough for a name.
const keyLength = 16

// Key names the job on its cluster: the same in each of the job's processes,
// different for the same job id of another GitLab instance or another runner.
// It is 16 hex digits, so it fits in a label and in a name.
func (j Job) Key() string {
	// A length before each part keeps ("a","bc") and ("ab","c") apart.
	h := sha256.New()
	for _, part := range []string{j.Host(), strconv.FormatInt(j.ID, 10), j.RunnerToken} {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil))[:keyLength]
}

// shortKey is how many digits of the key tell jobs of one id apart.
const shortKey = 8

// ShortKey is the part of the Key that stands beside the job's id in names.
func (j Job) ShortKey() string { return j.Key()[:shortKey] }

// PodName is the name of the Pod of one attempt. A new attempt makes a new
// Pod, since the old one may still be terminating.
func (j Job) PodName(attempt string) string {
	return strings.Join([]string{"job", strconv.FormatInt(j.ID, 10), j.ShortKey(), attempt}, "-")
}
