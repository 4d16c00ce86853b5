package stages

import (
	"github.com/socialweb-computer/tenant-executor/stages/owner"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// Host is what a stage knows of the host it runs on.
type Host struct {
	// Machine looks at processes.
	Machine owner.Host
	// Owner is the runner that called the stage; nil where it cannot be told,
	// and for a stage run by hand.
	Owner *owner.Owner
	// State is the state folder; nil where it cannot be used, for the reason
	// in StateErr.
	State    *state.Folder
	StateErr error
}

// annotation is the owner as the Pod carries it.
func (h Host) annotation() string {
	if h.Owner == nil {
		return ""
	}
	return h.Owner.String()
}
