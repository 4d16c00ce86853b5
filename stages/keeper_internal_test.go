package stages

import (
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

// stopped is a clock that tests set.
type stopped struct{ now time.Time }

func (s *stopped) Now() time.Time                       { return s.now }
func (s *stopped) After(time.Duration) <-chan time.Time { return nil }

// A wait that no boot explains is warned about once, and anew when another has
// lasted as long.
func TestLongWaits(t *testing.T) {
	clock := &stopped{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	var out strings.Builder
	k := &Keeper{log: joblog.New(&out), clock: clock}
	for _, step := range []struct {
		after   time.Duration
		waiting int
		warned  int
	}{
		{0, 1, 0},
		{9 * time.Minute, 2, 0},
		{time.Minute, 1, 1},
		{time.Hour, 1, 1},
		{time.Minute, 0, 1},
		{time.Minute, 1, 1},
		{9 * time.Minute, 1, 1},
		{time.Minute, 1, 2},
	} {
		clock.now = clock.now.Add(step.after)
		k.watchWait(capacity.Plan{Waiting: step.waiting})
		if got := strings.Count(out.String(), "SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE has to be 1"); got != step.warned {
			t.Errorf("at %s: %d warnings, want %d", clock.now.Format(time.TimeOnly), got, step.warned)
		}
	}
}
