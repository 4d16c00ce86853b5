package reap_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/socialweb-computer/tenant-executor/kube/reap"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// pod is a Pod that runs on a node that is well, made an hour ago.
func pod(name, job string, changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ci", UID: types.UID("uid-" + name), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{"job": job}, Annotations: map[string]string{"expires": now().Add(time.Minute).Format(time.RFC3339)},
		},
		Spec:   corev1.PodSpec{NodeName: "well"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func owned(life string) func(*corev1.Pod) { return by("runner", life) }

// by is a Pod of a process.
func by(process, life string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations["process"], p.Annotations["life"] = process, life }
}

func ofAnother(p *corev1.Pod) { p.Annotations["whose"] = "another's" }

// finalized is a Pod that has ended after its deletion.
func finalized(p *corev1.Pod) {
	zero := int64(0)
	p.Finalizers, p.DeletionGracePeriodSeconds = []string{"example.com/keep"}, &zero
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func made(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = ago(d) }
}

func expires(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations["expires"] = text }
}

// deleted is a Pod whose grace ended a while ago.
func deleted(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { at := ago(d); p.DeletionTimestamp = &at }
}

func held(until string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations["held"] = until }
}

func ended(phase corev1.PodPhase, d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(d)}}},
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(d + time.Minute)}}},
		}
	}
}

func evicted(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, LastTransitionTime: ago(d)}}
	}
}

func rules() reap.Rules {
	return reap.Rules{
		Now: now(), Group: "job", Expires: "expires", Held: "held",
		Ours: func(o metav1.Object) bool { return o.GetAnnotations()["whose"] != "another's" },
		Owner: func(o metav1.Object) reap.Owner {
			return reap.Owner{
				Process: o.GetAnnotations()["process"],
				Life:    map[string]reap.Life{"alive": reap.Alive, "gone": reap.Gone, "over": reap.Over}[o.GetAnnotations()["life"]],
			}
		},
		Node: func(name string) reap.Node {
			return map[string]reap.Node{"lost": reap.NodeMissing, "silent": reap.NodeSilent}[name]
		},
	}
}

func TestPods(t *testing.T) {
	const none = ""
	for _, test := range []struct {
		name  string
		pod   corev1.Pod
		want  reap.Reason
		force bool
	}{
		{"runs, nobody knows whose", pod("a", "1"), none, false},
		{"runs, between two stages", pod("a", "1", owned("alive")), none, false},
		{"has no node yet", pod("a", "1", owned("alive"), on("")), none, false},
		{"its runner sees to its lost node", pod("a", "1", owned("alive"), on("lost")), none, false},
		{"its runner died", pod("a", "1", owned("gone")), reap.OwnerGone, false},
		{"its runner died before it had a node", pod("a", "1", owned("gone"), on("")), reap.OwnerGone, false},
		{"its runner died, and its node is lost", pod("a", "1", owned("gone"), on("lost")), reap.OwnerGone, true},
		{"its runner goes on without it", pod("a", "1", owned("over")), reap.AttemptOver, false},
		{"expired, and its runner lives", pod("a", "1", owned("alive"), expires("2026-03-01T11:59:59Z")), none, false},
		{"expired, of a runner elsewhere", pod("a", "1", owned("unknown"), expires("2026-03-01T11:59:59Z")), reap.Expired, false},
		{"expired", pod("a", "1", expires("2026-03-01T11:59:59Z")), reap.Expired, false},
		{"expired, another's", pod("a", "1", ofAnother, expires("2026-03-01T11:59:59Z")), none, false},
		{"another's, whose runner died", pod("a", "1", ofAnother, owned("gone")), reap.OwnerGone, false},
		{"another's, whose attempt is over", pod("a", "1", ofAnother, owned("over")), reap.AttemptOver, false},
		{"another's, its node is lost", pod("a", "1", ofAnother, on("lost")), none, false},
		{"another's, ending on a lost node", pod("a", "1", ofAnother, on("lost"), deleted(time.Hour)), none, false},
		{"another's, whose runner died, ending on a lost node", pod("a", "1", ofAnother, owned("gone"), on("lost"), deleted(time.Hour)), reap.NodeGone, true},
		{"another's, kept on purpose on a lost node", pod("a", "1", ofAnother, held("2026-03-01T12:00:01Z"), on("lost")), none, false},
		{"expires now", pod("a", "1", expires("2026-03-01T12:00:00Z")), none, false},
		{"nobody knows when it expires", pod("a", "1", expires("tomorrow")), none, false},
		{"no expiry", pod("a", "1", expires("")), none, false},
		{"ended just now", pod("a", "1", ended(corev1.PodSucceeded, 9*time.Minute)), none, false},
		{"ended, and its runner lives", pod("a", "1", owned("alive"), ended(corev1.PodSucceeded, 11*time.Minute)), none, false},
		{"ended", pod("a", "1", ended(corev1.PodSucceeded, 11*time.Minute)), reap.Finished, false},
		{"somebody's finalizer keeps it", pod("a", "1", owned("alive"), finalized, deleted(11*time.Second)), reap.Finalizer, false},
		{"somebody's finalizer keeps it on a lost node", pod("a", "1", on("lost"), finalized, deleted(11*time.Second)), reap.Finalizer, false},
		{"somebody's finalizer, just now", pod("a", "1", finalized, deleted(9*time.Second)), none, false},
		{"somebody's finalizer, another's", pod("a", "1", ofAnother, finalized, deleted(time.Hour)), none, false},
		{"failed", pod("a", "1", ended(corev1.PodFailed, 11*time.Minute)), reap.Finished, false},
		{"evicted just now", pod("a", "1", evicted(9*time.Minute)), none, false},
		{"evicted", pod("a", "1", evicted(11*time.Minute)), reap.Finished, false},
		{"its node is lost, nobody knows whose", pod("a", "1", on("lost")), reap.NodeGone, true},
		{"its node is silent, nobody knows whose", pod("a", "1", on("silent")), none, false},
		{"its runner died, and its node is silent", pod("a", "1", owned("gone"), on("silent")), reap.OwnerGone, true},
		{"kept on purpose, its runner died", pod("a", "1", owned("gone"), held("2026-03-01T12:00:01Z")), none, false},
		{"kept on purpose, its runner goes on", pod("a", "1", owned("over"), held("2026-03-01T12:00:01Z")), none, false},
		{"kept until now", pod("a", "1", owned("over"), held("2026-03-01T12:00:00Z")), reap.AttemptOver, false},
		{"kept until now, its runner lives", pod("a", "1", owned("alive"), held("2026-03-01T12:00:00Z")), reap.Expired, false},
		{"kept for nobody knows how long, its runner lives", pod("a", "1", owned("alive"), held("soon")), none, false},
		{"kept for nobody knows how long", pod("a", "1", owned("over"), held("soon")), reap.AttemptOver, false},
		{"kept on purpose, and ended", pod("a", "1", owned("over"), held("2026-03-01T12:00:01Z"), ended(corev1.PodFailed, time.Second)), reap.AttemptOver, false},
		{"kept on purpose on a lost node", pod("a", "1", owned("over"), held("2026-03-01T12:00:01Z"), on("lost")), reap.NodeGone, true},
		{"kept on purpose on a silent node", pod("a", "1", owned("over"), held("2026-03-01T12:00:01Z"), on("silent")), none, false},
		{"ending on a silent node", pod("a", "1", on("silent"), deleted(11*time.Second)), reap.NodeGone, true},
		{"ending on a node that is well", pod("a", "1", owned("gone"), deleted(time.Hour)), none, false},
		{"ending on a lost node", pod("a", "1", owned("alive"), on("lost"), deleted(11*time.Second)), reap.NodeGone, true},
		{"ending in its grace", pod("a", "1", on("lost"), deleted(-time.Second)), none, false},
		{"ending on a lost node since just now", pod("a", "1", on("lost"), deleted(9*time.Second)), none, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			left := rules().Pods([]corev1.Pod{test.pod})
			if test.want == none {
				if len(left) != 0 {
					t.Errorf("got %+v, want it left alone", left)
				}
				return
			}
			if len(left) != 1 || left[0].Reason != test.want || left[0].Force != test.force || left[0].UID != "uid-a" {
				t.Errorf("got %+v, want %q, force %t", left, test.want, test.force)
			}
		})
	}
}

func reasons(left []reap.Leftover) map[string]reap.Reason {
	all := map[string]reap.Reason{}
	for _, l := range left {
		all[l.Name] = l.Reason
	}
	return all
}

// Two runners have the same job in hand: neither is the other's earlier attempt.
func TestTwoOwnersOfOneJob(t *testing.T) {
	list := []corev1.Pod{
		pod("first", "1", by("x", "alive"), made(time.Hour)), pod("second", "1", by("y", "alive"), made(time.Minute)),
		pod("elsewhere", "1", by("z", "unknown"), made(2*time.Hour)),
		pod("first's earlier", "1", by("x", "alive"), made(2*time.Hour)),
		pod("nobody's", "1", by("", "unknown"), made(2*time.Hour)),
	}
	r := rules()
	if got := reasons(r.Pods(list)); len(got) != 2 || got["first's earlier"] != reap.Abandoned || got["nobody's"] != reap.Abandoned {
		t.Errorf("got %v", got)
	}
	r.Replaced, r.Self = "1", "y"
	if got := reasons(r.Pods(list)); len(got) != 3 || got["second"] != reap.Abandoned {
		t.Errorf("where y makes another: %v", got)
	}
	r.Self = "" // a person
	if got := reasons(r.Pods(list)); len(got) != 2 {
		t.Errorf("where a person makes another: %v", got)
	}
}

// every is each combination of what decides about a Pod that is not deleted.
func every(visit func(name string, p corev1.Pod)) {
	type choice struct {
		name   string
		change func(*corev1.Pod)
	}
	nothing := func(*corev1.Pod) {}
	var walk func(name string, changes []func(*corev1.Pod), left [][]choice)
	walk = func(name string, changes []func(*corev1.Pod), left [][]choice) {
		if len(left) == 0 {
			visit(name, pod("a", "1", changes...))
			return
		}
		for _, c := range left[0] {
			walk(name+" "+c.name, append(changes[:len(changes):len(changes)], c.change), left[1:])
		}
	}
	walk("", nil, [][]choice{
		{{"unowned", nothing}, {"alive", owned("alive")}, {"gone", owned("gone")}, {"over", owned("over")}, {"elsewhere", owned("unknown")}},
		{{"ours", nothing}, {"another's", ofAnother}},
		{{"first", nothing}, {"earlier", made(48 * time.Hour)}},
		{{"in time", nothing}, {"expired", expires("2026-03-01T11:00:00Z")}},
		{{"runs", nothing}, {"ended", ended(corev1.PodFailed, time.Hour)}},
		{{"on a node that is well", nothing}, {"on a silent node", on("silent")}, {"on a lost node", on("lost")}},
	})
}

// Whatever else is true: the owner decides first, and a clock never against one
// who lives or of whom only another may judge.
func TestOwnerDecidesFirst(t *testing.T) {
	n := 0
	every(func(name string, p corev1.Pod) {
		n++
		has := func(word string) bool { return strings.Contains(name+" ", " "+word+" ") }
		// Beside it there is a newer Pod of the same job and owner.
		newer := pod("newer", "1", func(q *corev1.Pod) { q.Annotations["process"] = p.Annotations["process"] })
		newer.Annotations["life"] = p.Annotations["life"]
		var got reap.Leftover
		for _, l := range rules().Pods([]corev1.Pod{p, newer}) {
			if l.Name == "a" {
				got = l
			}
		}
		want := reap.Reason("")
		switch {
		case has("gone"):
			want = reap.OwnerGone
		case has("over"):
			want = reap.AttemptOver
		case has("another's"):
		case has("earlier"):
			want = reap.Abandoned
		case has("alive"):
		case has("expired"):
			want = reap.Expired
		case has("ended"):
			want = reap.Finished
		case has("lost"):
			want = reap.NodeGone
		}
		if got.Reason != want {
			t.Errorf("%s: got %q, want %q", name, got.Reason, want)
		}
		if got.Force != (want != "" && (has("lost") || has("silent"))) {
			t.Errorf("%s: force is %t", name, got.Force)
		}
	})
	if n != 5*2*2*2*2*3 {
		t.Errorf("%d cases", n)
	}
}

// Placeholders that have ended hold nothing, whosever they are.
func TestEnded(t *testing.T) {
	got := reasons(reap.Ended([]corev1.Pod{
		pod("runs", ""), pod("ended", "", ended(corev1.PodFailed, 0)), pod("going", "", ended(corev1.PodFailed, 0), deleted(0)), pod("another's", "", ofAnother, ended(corev1.PodSucceeded, 0)),
	}))
	if len(got) != 2 || got["ended"] != reap.Finished || got["another's"] != reap.Finished {
		t.Errorf("got %v", got)
	}
}

// Of the attempts at one job the newest counts, of those that are not ending.
func TestNewerAttempts(t *testing.T) {
	list := []corev1.Pod{
		pod("newest", "1", made(time.Minute), owned("alive")),
		pod("older", "1", made(2*time.Minute), owned("alive")),
		pod("oldest", "1", made(time.Hour)), // of nobody knows whom
		pod("of the same second", "2", made(time.Minute)), pod("and this one", "2", made(time.Minute)),
		pod("the newer one is ending", "3", made(time.Hour)), pod("ending", "3", made(time.Minute), deleted(0)),
		pod("of no job", "", made(time.Hour)), pod("neither", "", made(time.Minute)),
	}
	r := rules()
	got := reasons(r.Pods(list))
	if len(got) != 2 || got["older"] != reap.Abandoned || got["oldest"] != reap.Abandoned {
		t.Errorf("got %v", got)
	}
	r.Replaced, r.Self = "2", "runner"
	if got := reasons(r.Pods(list)); len(got) != 4 || got["and this one"] != reap.Abandoned {
		t.Errorf("with job 2 about to be prepared again: %v", got)
	}
}

func TestAll(t *testing.T) {
	left := rules().All([]corev1.Pod{
		pod("runs", "1", owned("alive")), pod("ending", "1", deleted(0)), pod("lost", "1", on("lost")), pod("ending, lost", "1", on("lost"), deleted(0)),
	}, reap.Undone)
	if got := reasons(left); len(got) != 3 || got["runs"] != reap.Undone || left[0].Force || !left[1].Force || !left[2].Force {
		t.Errorf("got %+v", left)
	}
}

func TestSecrets(t *testing.T) {
	secret := func(name, job string, change func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
		s := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"job": job}, CreationTimestamp: ago(time.Hour), Annotations: map[string]string{},
		}}
		change(&s)
		return s
	}
	nothing := func(*metav1.PartialObjectMetadata) {}
	fresh := func(s *metav1.PartialObjectMetadata) { s.CreationTimestamp = ago(time.Minute) }
	list := []metav1.PartialObjectMetadata{
		secret("used", "1", nothing),
		secret("left", "2", nothing),
		secret("its Pod comes", "3", fresh),
		secret("its runner died", "4", func(s *metav1.PartialObjectMetadata) { fresh(s); s.Annotations["life"] = "gone" }),
		secret("its attempt is over", "4", func(s *metav1.PartialObjectMetadata) { fresh(s); s.Annotations["life"] = "over" }),
		secret("expired", "5", func(s *metav1.PartialObjectMetadata) { fresh(s); s.Annotations["expires"] = "2026-03-01T11:00:00Z" }),
		secret("going", "6", func(s *metav1.PartialObjectMetadata) { at := ago(0); s.DeletionTimestamp = &at }),
		secret("of no job", "", nothing),
		secret("its runner lives", "7", func(s *metav1.PartialObjectMetadata) {
			s.Annotations["life"], s.Annotations["expires"] = "alive", "2026-03-01T11:00:00Z"
		}),
		secret("another's", "8", func(s *metav1.PartialObjectMetadata) { s.Annotations["whose"] = "another's" }),
	}
	if got := rules().Namespaces(list[:2], []corev1.Pod{pod("a", "1")}); len(got) != 1 || got[0].Kind != "Namespace" || got[0].Name != "left" {
		t.Errorf("as namespaces: %+v", got)
	}
	got := reasons(rules().Secrets(list, []corev1.Pod{pod("a", "1", deleted(0))}))
	if len(got) != 4 || got["left"] != reap.NoPod || got["its runner died"] != reap.NoPod || got["its attempt is over"] != reap.NoPod || got["expired"] != reap.NoPod {
		t.Errorf("got %v", got)
	}
}

// Nodes cost a request, so they are asked for only where they decide.
func TestNodesAreAskedForRarely(t *testing.T) {
	r := rules()
	r.Node = func(name string) reap.Node { t.Errorf("node %s was asked for", name); return reap.NodeWell }
	r.Pods([]corev1.Pod{pod("a", "1", owned("alive")), pod("b", "2", owned("alive"), deleted(0)), pod("c", "3", owned("gone"), on(""))})
}
