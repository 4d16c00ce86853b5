package stream_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// noRole is how an apiserver answers that has not read its roles.
func noRole() faultserver.Fault {
	return faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden,
		`pods "job" is forbidden: User "driver" cannot create resource "pods/exec" in API group "" in the namespace "ci"`)
}

// An apiserver that was away for long and reads its roles late costs nothing,
// whatever it answers in between.
func TestFollowerBearsALateStart(t *testing.T) {
	t.Parallel()
	away, starting := faultserver.Reset(), faultserver.Answer(http.StatusServiceUnavailable, "starting")
	many := func(n int, f faultserver.Fault) []faultserver.Fault { return slices.Repeat([]faultserver.Fault{f}, n) }
	for name, answers := range map[string][]faultserver.Fault{
		"away for 5 s":                 slices.Concat(many(9, away), many(4, noRole())),
		"away for 12 s":                slices.Concat(many(12, away), many(3, noRole())),
		"away for 30 s":                slices.Concat(many(21, away), many(6, noRole())),
		"roles that take 20 s":         slices.Concat(many(3, away), many(16, noRole())),
		"one after the other":          slices.Concat(many(8, away), many(5, noRole()), many(3, starting), many(5, noRole()), many(2, away), many(6, noRole())),
		"a start that begins with 503": slices.Concat(many(8, away), many(8, starting), many(7, noRole())),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c *course
			c = newCourse(t,
				func(p *peer) {
					for _, answer := range answers {
						c.server.Fail(1, "create", "pods/exec", answer)
					}
					p.begin()
					p.send(agent.KindData, 0, "0123")
				},
				func(p *peer) { p.begin(); p.send(agent.KindData, int(p.offset), "456789"); p.end(10, 3) })
			c.server.Fail(-1, "get", "readyz", faultserver.Answer(http.StatusForbidden, "no"))
			status, err := c.follow(t.Context())
			if err != nil || status.Exit != 3 || c.output.String() != "0123456789" {
				t.Errorf("ended with %+v, %v and %q", status, err, c.output.String())
			}
		})
	}
}

// A right that is missing is told within seconds of the apiserver's word that it
// is ready, and without that word in two minutes.
func TestFollowerTellsAMissingRight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ready           int
		atLeast, atMost time.Duration
	}{
		"ready":       {0, 2 * time.Second, 5 * time.Second},
		"ready later": {20, 20 * time.Second, 60 * time.Second},
		"no word":     {-1, 2 * time.Minute, 125 * time.Second},
	} {
		c := newCourse(t)
		c.outage = 10 * time.Minute
		c.server.Fail(-1, "create", "pods/exec", noRole())
		c.server.Fail(test.ready, "get", "readyz", faultserver.Answer(http.StatusInternalServerError, "[-]informer-sync failed"))
		from := c.clock.Now()
		_, err := c.follow(t.Context())
		var final *stream.FinalError
		if took := c.clock.Now().Sub(from); !errors.As(err, &final) || !cluster.Denied(err) || took < test.atLeast || took > test.atMost {
			t.Errorf("%s: %v after %s", name, err, took)
		}
	}
}
