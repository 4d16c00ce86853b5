package pods_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

func ours(*corev1.Pod) bool      { return true }
func foreign(p *corev1.Pod) bool { return p.Labels["job"] == "2" }

func TestCreate(t *testing.T) {
	t.Parallel()
	exists := func(s *faultserver.Server) { s.AddPod(somePod("a")) }
	lost := func(s *faultserver.Server) { s.Fail(1, "create", "pods", faultserver.LoseReply()) }
	tests := []struct {
		name    string
		before  func(*faultserver.Server)
		mine    func(*corev1.Pod) bool
		creates int
		want    func(error) bool
	}{
		{"at once", func(*faultserver.Server) {}, ours, 1, nil},
		{"reply lost", lost, ours, 2, nil},
		{"reply lost, and then another's Pod found", lost, foreign, 2, isForeign},
		{"name taken before", exists, ours, 1, apierrors.IsAlreadyExists},
		{"broken off, not carried out", func(s *faultserver.Server) { s.Fail(2, "create", "pods", faultserver.Abort()) }, ours, 3, nil},
		{"apiserver overloaded", func(s *faultserver.Server) {
			s.Fail(1, "create", "pods", faultserver.AnswerStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out"))
		}, ours, 2, nil},
		{"quota", func(s *faultserver.Server) {
			s.Fail(1, "create", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota"))
		}, ours, 1, apierrors.IsForbidden},
		{"invalid", func(s *faultserver.Server) {
			s.Fail(1, "create", "pods", faultserver.AnswerStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "spec.x: invalid"))
		}, ours, 1, apierrors.IsInvalid},
		{"reply lost, the Pod on its way out", func(s *faultserver.Server) {
			lost(s)
			s.OnCreate(faultserver.Terminating())
		}, ours, 2, isForeign},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			client := newClient(t, server, time.Minute)
			test.before(server)
			got, err := client.Create(t.Context(), somePod("a"), test.mine)
			if test.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if got.UID != server.Pods()[0].UID {
					t.Error("the Pod is not the one on the cluster")
				}
			} else if !test.want(err) {
				t.Errorf("got %v, %v", got, err)
			}
			if n := server.Requests().Count("create", "pods"); n != test.creates {
				t.Errorf("%d create requests, want %d:\n%s", n, test.creates, server.Requests())
			}
			if n := len(server.Pods()); n > 1 {
				t.Errorf("%d Pods were made", n)
			}
		})
	}
}

func isForeign(err error) bool { return errors.Is(err, pods.ErrForeign) }

func TestGetKnowsAPodByItsUID(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	old := server.AddPod(somePod("a"))
	ref := pods.RefTo(old)
	if got, err := client.Get(t.Context(), ref); err != nil || got.UID != old.UID {
		t.Fatalf("got %v, %v", got, err)
	}
	server.Apply(faultserver.Removed())
	server.AddPod(somePod("a"))
	if got, err := client.Get(t.Context(), ref); !apierrors.IsNotFound(err) {
		t.Errorf("another Pod of the name: got %v, %v", got, err)
	}
	ref.UID = ""
	if _, err := client.Get(t.Context(), ref); err != nil {
		t.Errorf("without a UID any Pod of the name will do: %v", err)
	}
}

func TestListIsByLabelAndAge(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	now := time.Now()
	for i, name := range []string{"newest", "oldest", "middle"} {
		age := []time.Duration{1, 3, 2}[i] * time.Minute
		server.AddPod(somePod(name), faultserver.Change(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-age)) }))
	}
	other := somePod("other")
	other.Labels["job"] = "2"
	server.AddPod(other)
	elsewhere := somePod("elsewhere")
	elsewhere.Namespace = "default"
	server.AddPod(elsewhere)
	server.Fail(1, "list", "pods", faultserver.Reset())

	list, err := client.List(t.Context(), namespace, "job=1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"oldest", "middle", "newest"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		before func(*faultserver.Server)
		grace  time.Duration
		want   int64
	}{
		{"grace in seconds", nil, 5 * time.Second, 5},
		{"never less than a second", nil, 0, 1},
		{"the rest of a second does not count", nil, 1500 * time.Millisecond, 1},
		{"tried again", func(s *faultserver.Server) { s.Fail(2, "delete", "pods", faultserver.Abort()) }, time.Second, 1},
		{"reply lost", func(s *faultserver.Server) { s.Fail(1, "delete", "pods", faultserver.LoseReply()) }, time.Second, 1},
		{"gone already", func(s *faultserver.Server) { s.Apply(faultserver.Removed()) }, time.Second, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			client := newClient(t, server, time.Minute)
			pod := server.AddPod(somePod("a"), faultserver.Scheduled("n1"), faultserver.Running())
			if test.before != nil {
				test.before(server)
			}
			if err := client.Delete(t.Context(), pods.RefTo(pod), test.grace); err != nil {
				t.Fatal(err)
			}
			if left := server.Pods(); len(left) != 0 {
				t.Errorf("%d Pods are left", len(left))
			}
			if got := deleteOptions(t, server); *got.GracePeriodSeconds != test.want || *got.Preconditions.UID != pod.UID {
				t.Errorf("grace %d, UID %s; want %d, %s", *got.GracePeriodSeconds, *got.Preconditions.UID, test.want, pod.UID)
			}
		})
	}
}

func deleteOptions(t *testing.T, server *faultserver.Server) metav1.DeleteOptions {
	t.Helper()
	requests := server.Requests().Of("delete", "pods")
	if len(requests) == 0 {
		t.Fatal("no delete request was made")
	}
	var options metav1.DeleteOptions
	if err := json.Unmarshal([]byte(requests[len(requests)-1].Body), &options); err != nil {
		t.Fatal(err)
	}
	return options
}

// A later Pod of the same name is not deleted in place of the one meant.
func TestDeleteSparesAnotherPod(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	old := server.AddPod(somePod("a"))
	server.Apply(faultserver.Removed())
	server.AddPod(somePod("a"))
	for name, remove := range map[string]func(context.Context, pods.Ref) error{
		"Delete":      func(ctx context.Context, ref pods.Ref) error { return client.Delete(ctx, ref, time.Second) },
		"ForceDelete": client.ForceDelete,
	} {
		if err := remove(t.Context(), pods.RefTo(old)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := server.Pods(); len(left) != 1 {
			t.Fatalf("%s deleted another Pod", name)
		}
	}
}

func TestForceDelete(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	server.KeepTerminating()
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"), faultserver.Scheduled("n1"), faultserver.Running())
	if err := client.Delete(t.Context(), pods.RefTo(pod), time.Second); err != nil {
		t.Fatal(err)
	}
	if left := server.Pods(); len(left) != 1 || left[0].DeletionTimestamp == nil {
		t.Fatal("the Pod should be terminating: no kubelet ends it")
	}
	if err := client.ForceDelete(t.Context(), pods.Ref{Namespace: namespace, Name: "a"}); err == nil {
		t.Error("a Pod without a UID was removed by force")
	}
	if err := client.ForceDelete(t.Context(), pods.RefTo(pod)); err != nil {
		t.Fatal(err)
	}
	if left := server.Pods(); len(left) != 0 {
		t.Error("the Pod is still there")
	}
	if grace := *deleteOptions(t, server).GracePeriodSeconds; grace != 0 {
		t.Errorf("grace %d, want 0", grace)
	}
}

func TestDeleteThatIsDenied(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	client := newClient(t, server, time.Minute)
	pod := server.AddPod(somePod("a"))
	server.Fail(-1, "delete", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
	err := client.Delete(t.Context(), pods.RefTo(pod), time.Second)
	if !apierrors.IsForbidden(err) || err.Error() != "deleting Pod ci/a: no" {
		t.Errorf("got %v", err)
	}
	if n := server.Requests().Count("delete", "pods"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
