package job

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// ImageOptions are image:kubernetes of a job.
type ImageOptions struct {
	Kubernetes struct {
		// User is "uid" or "uid:gid", not yet expanded; "" where the job names
		// none.
		User UserID `json:"user"`
	} `json:"kubernetes"`
}

// UserID is a user that GitLab sends as a text or as a number
// (common/spec/spec.go:286).
type UserID string

// UnmarshalJSON takes either.
func (u *UserID) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*u = UserID(text)
		return nil
	}
	var n int64
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("the user of an image is %s: it has to be a text or a whole number", data)
	}
	*u = UserID(strconv.FormatInt(n, 10))
	return nil
}

// CredentialRegistry is the Type of a login to a registry.
const CredentialRegistry = "registry"

// Credential is a login that GitLab gives to the job.
type Credential struct {
	Type     string `json:"type"`
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"`
}
