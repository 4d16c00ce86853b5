package capacity_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

func TestHold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		before func(*poolBed)
		want   bool
	}{
		{"the node is free", func(*poolBed) {}, true},
		{"the job's Pod has ended", func(b *poolBed) { b.add("j", "n1", "job", "", faultserver.Evicted("x")) }, true},
		{"the job's Pod is still there", func(b *poolBed) { b.add("j", "n1", "job", "", faultserver.Terminating()) }, false},
		{"another job has it", func(b *poolBed) { b.add("j", "n1", "job", "") }, false},
		{"another job has another node", func(b *poolBed) { b.add("j", "n2", "job", "") }, true},
		{"another job waits for a node", func(b *poolBed) { b.add("j", "", "job", "") }, false},
		{"a policy holds it", func(b *poolBed) { b.add("p", "n1", "placeholder", "policy") }, false},
		{"a policy holds another", func(b *poolBed) { b.add("p", "n2", "placeholder", "policy") }, true},
		{"a policy's placeholder waits for a node", func(b *poolBed) { b.add("p", "", "placeholder", "policy") }, false},
		{"it lingers already", func(b *poolBed) { b.add("h", "n1", "placeholder", "linger") }, false},
		{"an earlier placeholder's time is up", func(b *poolBed) {
			if _, err := b.pool.Hold(context.Background(), "n1", time.Hour); err != nil {
				panic(err)
			}
			b.Apply(faultserver.Evicted("DeadlineExceeded"))
		}, true},
		{"the reply gets lost", func(b *poolBed) { b.Fail(1, "create", "pods", faultserver.LoseReply()) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newPool(t)
			test.before(b)
			ok, err := b.pool.Hold(t.Context(), "n1", time.Minute)
			if ok != test.want || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
			count := 0
			for _, pod := range b.Pods() {
				if pod.Spec.NodeName == "n1" && pod.Labels["hold"] == "linger" && pod.Name != "h" && pod.Status.Phase != corev1.PodFailed {
					count++
				}
			}
			if want := map[bool]int{true: 1}[test.want]; count != want {
				t.Errorf("%d placeholders linger on the node, want %d: %s", count, want, b.names())
			}
		})
	}
}

func TestTake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		before     func(*poolBed)
		want, left string
	}{
		{"nothing lingers", func(*poolBed) {}, "", ""},
		{"one lingers", func(b *poolBed) { b.add("h", "n1", "placeholder", "linger") }, "n1", ""},
		{"of two the first", func(b *poolBed) {
			b.add("h1", "n2", "placeholder", "linger")
			b.add("h2", "n1", "placeholder", "linger")
		}, "n2", "h2"},
		{"what a policy holds stays: the spare is wanted", func(b *poolBed) { b.add("p", "n1", "placeholder", "policy") }, "", "p"},
		{"left beside a job by one who died", func(b *poolBed) {
			b.add("j", "n1", "job", "")
			b.add("p", "n1", "placeholder", "policy")
			b.add("h", "n1", "placeholder", "linger")
		}, "", "j"},
		{"left when its time was up", func(b *poolBed) {
			b.add("h", "n1", "placeholder", "linger", faultserver.Evicted("DeadlineExceeded"))
		}, "", ""},
		{"somebody else is quicker", func(b *poolBed) {
			b.add("h1", "n1", "placeholder", "linger")
			b.add("h2", "n2", "placeholder", "linger")
			b.Fail(1, "delete", "pods", faultserver.AnswerStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "gone"))
		}, "n2", "h1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newPool(t)
			test.before(b)
			node, err := b.pool.Take(t.Context())
			if node != test.want || err != nil || b.names() != test.left {
				t.Errorf("took %q, %v, left are %q; want %q, %q", node, err, b.names(), test.want, test.left)
			}
			for _, r := range b.Requests().Of("delete", "pods") {
				// The object must be gone before the job's Pod is made.
				if !strings.Contains(r.Body, `"gracePeriodSeconds":0`) || !strings.Contains(r.Body, `"uid":`) {
					t.Errorf("deleted with %s", r.Body)
				}
			}
		})
	}
}

// Two jobs that come at once take two nodes.
func TestTwoTakeTwo(t *testing.T) {
	t.Parallel()
	b := newPool(t)
	b.add("h1", "n1", "placeholder", "linger")
	b.add("h2", "n2", "placeholder", "linger")
	nodes := make(chan string, 2)
	for range 2 {
		go func() {
			node, err := b.pool.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			nodes <- node
		}()
	}
	got := []string{<-nodes, <-nodes}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"n1", "n2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	b := newPool(t)
	b.add("j", "n1", "job", "")
	b.add("p1", "n1", "placeholder", "policy")
	b.add("p2", "n2", "placeholder", "policy")
	b.add("h", "n2", "placeholder", "linger")
	if err := b.pool.Release(t.Context()); err != nil || b.names() != "h j p2" {
		t.Errorf("error %v, left are %s", err, b.names())
	}
}
