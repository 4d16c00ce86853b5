package events

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }

// The kubelet writes the old form, the scheduler the new one.
func TestBothForms(t *testing.T) {
	about := corev1.ObjectReference{Kind: "Pod", Name: "p"}
	for name, test := range map[string]struct {
		event corev1.Event
		want  Event
	}{
		"old": {
			corev1.Event{
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", FieldPath: "spec.containers{build}"}, Type: "Warning", Reason: "BackOff", Message: "m", Source: corev1.EventSource{Component: "kubelet"},
				FirstTimestamp: metav1.NewTime(at(1)), LastTimestamp: metav1.NewTime(at(9)), Count: 4,
			},
			Event{At: at(9), First: at(1), Count: 4, Kind: "Pod", Object: "p", Container: "build", Warning: true, Reason: "BackOff", Message: "m", Source: "kubelet"},
		},
		"new": {
			corev1.Event{
				InvolvedObject: about, Type: "Normal", Reason: "Scheduled", ReportingController: "default-scheduler",
				EventTime: metav1.NewMicroTime(at(2)),
			},
			Event{At: at(2), First: at(2), Count: 1, Kind: "Pod", Object: "p", Reason: "Scheduled", Source: "default-scheduler"},
		},
		"series": {
			corev1.Event{
				InvolvedObject: about, EventTime: metav1.NewMicroTime(at(2)),
				Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at(8))},
			},
			Event{At: at(8), First: at(2), Count: 7, Kind: "Pod", Object: "p"},
		},
		"bare": {
			corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(3))}},
			Event{At: at(3), First: at(3), Count: 1},
		},
	} {
		if diff := cmp.Diff(test.want, read(&test.event), cmpopts.IgnoreUnexported(Event{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Most events are stamped by the second; their names tell more.
func TestOrder(t *testing.T) {
	named := func(name string, at time.Time) Event {
		return read(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: name, EventTime: metav1.NewMicroTime(at)})
	}
	all := []Event{named("job-1.a.18a2", at(1)), named("job-1.a.18a1", at(1).Add(time.Millisecond)), named("node.18a0", at(1).Add(time.Microsecond)), named("job-1.a.1", at(2)), named("odd", at(1))}
	Sort(all)
	var got []string
	for _, e := range all {
		got = append(got, e.Reason)
	}
	if diff := cmp.Diff([]string{"odd", "node.18a0", "job-1.a.18a1", "job-1.a.18a2", "job-1.a.1"}, got); diff != "" {
		t.Error(diff)
	}
}
