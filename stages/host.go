package stages

import (
	"github.com/socialweb-computer/tenant-executor/stages/owner"
)

// Host is what a stage knows of the host it runs on.
type Host struct {
	// Machine looks at processes.
	Machine owner.Host
	// Owner is the runner that called the stage; nil where it cannot be told,
	// and for a stage run by hand.
	Owner *owner.Owner
}

// annotation is the owner as the Pod carries it.
func (h Host) annotation() string {
	if h.Owner == nil {
		return ""
	}
	return h.Owner.String()
}
