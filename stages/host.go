package stages

import (
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/reap"
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

// Over is why an owner is proven to be done with what was made at a time, ""
// while it may not be.
func (h Host) Over(of owner.Owner, made time.Time) string {
	switch h.Machine.Life(of, made, h.Owner) {
	case owner.Gone:
		return string(reap.OwnerGone)
	case owner.Over:
		return string(reap.AttemptOver)
	}
	return ""
}
