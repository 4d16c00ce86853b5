// Package daemon is the one process that is the parent of a tenant's control
// plane and nodes, and that answers the verbs.
package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// Config is what `up` decided. It is the tenant's record file too.
type Config struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Network is the tenant's /16.
	Network string `json:"network"`
	// Components is the components binary.
	Components string `json:"components"`
	// Username and Password open the registry's listeners with a login.
	Username string `json:"registryUsername"`
	Password string `json:"registryPassword"`
	// Guest is a second user with that password, who may pull nothing.
	Guest string `json:"registryGuest"`
	// MountToken is the bearer token that the mount lets in.
	MountToken string `json:"mountToken"`
	// Gateway are the settings that the gateway starts with.
	Gateway gateway.Settings `json:"gateway"`
}

// ReadConfig reads a tenant's record.
func ReadConfig(t tenant.Tenant) (Config, error) {
	text, err := os.ReadFile(t.Record())
	if err != nil {
		return Config{}, fmt.Errorf("read the tenant's record: %w", err)
	}
	var config Config
	if err := json.Unmarshal(text, &config); err != nil {
		return Config{}, fmt.Errorf("read the tenant's record %s: %w", t.Record(), err)
	}
	return config, nil
}

// Write writes a tenant's record. It holds a password and a token: only the owner reads it.
func (c Config) Write(t tenant.Tenant) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write the tenant's record: %w", err)
	}
	return pki.Replace(t.Record(), append(text, '\n'), 0o600)
}
