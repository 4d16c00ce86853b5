package stages

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/admission"
)

// answers are what the cluster says from a time on.
type answers []struct {
	from time.Duration
	err  error
}

func (a answers) at(d time.Duration) (now error) {
	for _, next := range a {
		if d >= next.from {
			now = next.err
		}
	}
	return now
}

// What passes is waited for, each for its own time, and told once and then once a
// minute.
func TestEntrance(t *testing.T) {
	full := func(used string) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("exceeded quota: team, requested: pods=1, used: pods="+used+", limited: pods=2"))
	}
	unready := apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("status unknown for quota: team, resources: pods"))
	silent := admission.Stop(apierrors.NewInternalError(errors.New(`failed calling webhook "a.b": connection refused`)))
	invalid := apierrors.NewBadRequest("no")
	const told = "Waiting for quota team of namespace ci: 2 of 2 pods used"
	for _, test := range []struct {
		name    string
		cluster answers
		cause   failure.Cause
		waited  time.Duration
		lines   []string
	}{
		{"let in at once", answers{{0, nil}}, "", 0, nil},
		{"refused for good", answers{{0, invalid}}, failure.Internal, 0, nil},
		{"full for a moment", answers{{0, full("2")}, {20 * time.Second, nil}}, "", 22 * time.Second, []string{told}},
		{"full for long", answers{{0, full("2")}, {150 * time.Second, nil}}, "", 152 * time.Second, []string{told, told + " (for 1 min 2 s)", told + " (for 2 min 2 s)"}},
		{"not counted, then full", answers{{0, unready}, {2 * time.Second, full("2")}, {10 * time.Second, nil}}, "", 12 * time.Second,
			[]string{"Waiting for the cluster to count quota team of namespace ci", told}},
		{"full, then refused for good", answers{{0, full("2")}, {5 * time.Second, invalid}}, failure.Internal, 7 * time.Second, []string{told}},
		{"just in time", answers{{0, full("2")}, {10 * time.Minute, nil}}, "", 10 * time.Minute, nil},
		{"too late", answers{{0, full("2")}, {10*time.Minute + 1, nil}}, failure.QuotaFull, 10 * time.Minute, nil},
		{"a webhook that comes back", answers{{0, silent}, {time.Minute, nil}}, "", time.Minute, nil},
		{"a webhook that does not", answers{{0, silent}, {time.Minute + 1, nil}}, failure.WebhookDown, time.Minute,
			[]string{"Waiting for admission webhook a.b of the cluster: connection refused"}},
		{"a webhook after a quota", answers{{0, full("2")}, {9 * time.Minute, silent}, {10 * time.Minute, nil}}, "", 10*time.Minute + 2*time.Second, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				d := &Driver{log: joblog.New(&out), clock: Clock{}, settings: settings.Settings{Wait: settings.Wait{Node: "10m"}}}
				e, start := d.entrance("ci"), time.Now()
				err := e.pass(t.Context(), func() error { return test.cluster.at(time.Since(start)) })
				if err != nil && failure.Of(err).Cause != test.cause || err == nil && test.cause != "" {
					t.Errorf("got %v, want %s", err, test.cause)
				}
				if e.waited != test.waited {
					t.Errorf("waited %s, want %s", e.waited, test.waited)
				}
				if want := 10*time.Minute - test.waited; e.rest() != max(want, time.Second) {
					t.Errorf("%s are left for a node, want %s", e.rest(), want)
				}
				if got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"); test.lines != nil {
					if diff := cmp.Diff(test.lines, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// Whoever is ended while it waits ends at once.
func TestEntranceIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := &Driver{log: joblog.New(&out), clock: Clock{}, settings: settings.Settings{Wait: settings.Wait{Node: "10m"}}}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		start := time.Now()
		err := d.entrance("ci").pass(ctx, func() error {
			return apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"))
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 90*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
