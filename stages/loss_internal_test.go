package stages

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// A stage after one that has not reached its Pod tries for a short time, until
// one has reached it.
func TestOutageAfterAnOutage(t *testing.T) {
	t.Parallel()
	ref, other := pods.Ref{Namespace: "ci", Name: "a"}, pods.Ref{Namespace: "ci", Name: "b"}
	unreached := failure.New(failure.ConnectionLost, "it could not be reached")
	for name, test := range map[string]struct {
		byHand bool
		limit  time.Duration
		ref    pods.Ref
		errs   []error
		want   time.Duration
	}{
		"before":                 {false, 10 * time.Minute, ref, nil, 10 * time.Minute},
		"after":                  {false, 10 * time.Minute, ref, []error{unreached}, shortOutage},
		"after two":              {false, 10 * time.Minute, ref, []error{unreached, unreached}, shortOutage},
		"reached again":          {false, 10 * time.Minute, ref, []error{unreached, nil}, 10 * time.Minute},
		"reached, and it failed": {false, 10 * time.Minute, ref, []error{unreached, failure.Script(1)}, 10 * time.Minute},
		"another failure":        {false, 10 * time.Minute, ref, []error{unreached, errors.New("?")}, shortOutage},
		"another Pod":            {false, 10 * time.Minute, other, []error{unreached}, 10 * time.Minute},
		"shorter anyway":         {false, time.Second, ref, []error{unreached}, time.Second},
		"by hand":                {true, 10 * time.Minute, ref, []error{unreached}, 10 * time.Minute},
	} {
		d := &Driver{variables: job.Environment{}}
		if !test.byHand {
			d.variables = job.ParseEnvironment([]string{"BUILD_EXIT_CODE_FILE=" + filepath.Join(t.TempDir(), "code")})
		}
		d.settings.Run.Outage = settings.Duration(test.limit.String())
		for _, err := range test.errs {
			d.noteLoss(ref, err)
		}
		if got := d.outage(test.ref.Name); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
