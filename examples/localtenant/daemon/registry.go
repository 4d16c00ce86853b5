package daemon

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/registry"
)

// RegistryChange has the registry misbehave; nil leaves a setting as it is.
// The fields are those of registry.Faults.
type RegistryChange struct {
	// Mend ends all faults before the other fields are looked at.
	Mend           bool             `json:"mend,omitempty"`
	Delay          *metav1.Duration `json:"delay,omitempty"`
	Down           *bool            `json:"down,omitempty"`
	Refuse         *bool            `json:"refuse,omitempty"`
	RateLimited    *bool            `json:"rateLimited,omitempty"`
	BytesPerSecond *int64           `json:"bytesPerSecond,omitempty"`
	Repositories   *string          `json:"repositories,omitempty"`
}

// apply returns what the faults become.
func (c RegistryChange) apply(now registry.Faults) registry.Faults {
	if c.Mend {
		now = registry.Faults{}
	}
	if c.Delay != nil {
		now.Delay = c.Delay.Duration
	}
	set(&now.Down, c.Down)
	set(&now.Refuse, c.Refuse)
	set(&now.RateLimited, c.RateLimited)
	set(&now.BytesPerSecond, c.BytesPerSecond)
	set(&now.Repositories, c.Repositories)
	return now
}

// set takes over a value that was named.
func set[T any](into, named *T) {
	if named != nil {
		*into = *named
	}
}

// RegistryStatus says where images come from.
type RegistryStatus struct {
	// Plain, Auth and Token are host:port, over HTTP, with one content. Auth
	// wants the credentials by basic authentication, Token a token, which it
	// gives for the credentials.
	Plain    string `json:"plain"`
	Auth     string `json:"auth"`
	Token    string `json:"token"`
	Username string `json:"username"`
	Password string `json:"password"`
	// Guest is a user with the same password who may log in and pull nothing.
	Guest string `json:"guest"`
	// The faults that are set; see registry.Faults.
	Delay          metav1.Duration `json:"delay"`
	Down           bool            `json:"down"`
	Refuse         bool            `json:"refuse"`
	RateLimited    bool            `json:"rateLimited"`
	BytesPerSecond int64           `json:"bytesPerSecond"`
	Repositories   string          `json:"repositories"`
}

func (d *Daemon) setRegistry(r *http.Request) (any, error) {
	var change RegistryChange
	if err := decode(r, &change); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.registry.SetFaults(change.apply(d.registry.Faults())); err != nil {
		return nil, err
	}
	return d.registryStatus(), nil
}

// registryStatus wants the lock held.
func (d *Daemon) registryStatus() RegistryStatus {
	faults := d.registry.Faults()
	return RegistryStatus{
		Plain: d.registry.PlainAddr(), Auth: d.registry.AuthAddr(), Token: d.registry.TokenAddr(),
		Username: d.config.Username, Password: d.config.Password, Guest: d.config.Guest,
		Delay: metav1.Duration{Duration: faults.Delay}, Down: faults.Down, Refuse: faults.Refuse,
		RateLimited: faults.RateLimited, BytesPerSecond: faults.BytesPerSecond, Repositories: faults.Repositories,
	}
}
