package stages

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// A stage that was stopped is judged only where this driver has not asked for it:
// then it never counts as passed, whatever its record says.
func TestAStoppedStageHasNotPassed(t *testing.T) {
	t.Parallel()
	for _, s := range []agent.Status{{Stopped: true}, {Stopped: true, Exit: 3}, {Stopped: true, Signal: 9, OOM: 1}} {
		if err := (&Driver{}).verdict("build", s); err == nil || failure.Of(err).Cause != failure.Cancelled {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := (&Driver{}).verdict("build", agent.Status{}); err != nil {
		t.Errorf("a stage that passed: %v", err)
	}
}
