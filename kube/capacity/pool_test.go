package capacity_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

const namespace = "ci"

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func marks() capacity.Marks {
	return capacity.Marks{
		Node: capacity.Label{Name: "node", Value: "whole"}, Job: capacity.Label{Name: "component", Value: "job"},
		Placeholder: capacity.Label{Name: "component", Value: "placeholder"}, Linger: capacity.Label{Name: "hold", Value: "linger"},
		Policy: capacity.Label{Name: "hold", Value: "policy"}, Expires: "expires", Wanted: "wanted",
	}
}

// poolBed is a cluster with two nodes that are ready, and a pool on it.
type poolBed struct {
	*faultserver.Server
	client *cluster.Client
	nodes  *capacity.Nodes
	clock  *clock
	pool   *capacity.Pool
}

func newPool(t *testing.T) *poolBed {
	t.Helper()
	server := faultserver.Start(t)
	server.SetNode("n1", true)
	server.SetNode("n2", true)
	files := server.Credentials(t)
	c, err := cluster.Connect(t.Context(), cluster.Fixed(cluster.Config{URL: server.URL(), CAFile: files.CAFile, CertFile: files.CertFile, KeyFile: files.KeyFile, UserAgent: "test"}))
	if err != nil {
		t.Fatal(err)
	}
	b := &poolBed{Server: server, client: c, nodes: capacity.NewNodes(c, time.Minute), clock: &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}}
	b.pool = capacity.NewPool(c, time.Minute, b.clock, marks(), capacity.Template{
		Namespace: namespace, Image: "pause:1", PullPolicy: corev1.PullIfNotPresent, PullSecrets: []string{"login"},
		PriorityClass: "idle", NodeSelector: map[string]string{"kind": "ci"},
	})
	return b
}

func (b *poolBed) add(name, node, component, hold string, steps ...faultserver.Step) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Labels: map[string]string{"node": "whole", "component": component, "hold": hold},
			Annotations: map[string]string{"expires": "2026-11-30T12:10:00Z", "wanted": "2026-11-30T12:01:00Z"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}, NodeName: node},
	}
	if node != "" {
		steps = append([]faultserver.Step{faultserver.Scheduled(node), faultserver.Running()}, steps...)
	}
	return b.AddPod(pod, steps...)
}

func (b *poolBed) names() string {
	var all []string
	for _, pod := range b.Pods() {
		all = append(all, pod.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// apply plans for so many free nodes and carries it out.
func (b *poolBed) apply(t *testing.T, pool *capacity.Pool, wanted int) {
	t.Helper()
	plan, _, err := pool.Plan(t.Context(), b.nodes, func(int) int { return wanted })
	if err == nil {
		err = pool.Apply(t.Context(), plan, 15*time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The two kinds of placeholders, as the cluster gets them.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	const both = `
    allowPrivilegeEscalation: false
    capabilities:
      drop:
      - ALL
    readOnlyRootFilesystem: true
    runAsGroup: 65535
    runAsNonRoot: true
    runAsUser: 65535
    seccompProfile:
      type: RuntimeDefault
enableServiceLinks: false
imagePullSecrets:
- name: login
`
	const head = `automountServiceAccountToken: false
containers:
- image: pause:1
  imagePullPolicy: IfNotPresent
  name: pause
  resources:
    requests:
      cpu: "0"
      memory: "0"
  securityContext:` + both
	b := newPool(t)
	b.apply(t, b.pool, 1)
	if ok, err := b.pool.Hold(t.Context(), "n1", 90*time.Second); ok || err != nil {
		t.Fatalf("held although a placeholder waits for a node: %v, %v", ok, err)
	}
	b.Apply(faultserver.Scheduled("n2"))
	if ok, err := b.pool.Hold(t.Context(), "n1", 90*time.Second); !ok || err != nil {
		t.Fatal(ok, err)
	}
	list := b.Pods()
	if len(list) != 2 {
		t.Fatal(b.names())
	}
	list[0].Spec.NodeName = "" // the scheduler's
	for i, want := range []struct {
		name, annotations, spec string
		labels                  map[string]string
	}{
		{"placeholder-warm-0", "expires: \"2026-11-30T12:15:00Z\"\nwanted: \"2026-11-30T12:01:00Z\"\n", "activeDeadlineSeconds: 900\n" + head + `nodeSelector:
  kind: ci
priorityClassName: idle
restartPolicy: Always
terminationGracePeriodSeconds: 1
topologySpreadConstraints:
- labelSelector:
    matchLabels:
      node: whole
  maxSkew: 1
  minDomains: 2147483647
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: DoNotSchedule
`, map[string]string{"node": "whole", "component": "placeholder", "hold": "policy"}},
		{"placeholder-hold-", "expires: \"2026-11-30T12:01:30Z\"\n", "activeDeadlineSeconds: 90\n" + head + `nodeName: n1
priorityClassName: idle
restartPolicy: Always
terminationGracePeriodSeconds: 1
`, map[string]string{"node": "whole", "component": "placeholder", "hold": "linger"}},
	} {
		got := list[i]
		if !strings.HasPrefix(got.Name, want.name) {
			t.Errorf("name %s, want %s", got.Name, want.name)
		}
		if diff := cmp.Diff(want.labels, got.Labels); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", got.Name, diff)
		}
		for part, pair := range map[string][2]any{"annotations": {want.annotations, got.Annotations}, "spec": {want.spec, got.Spec}} {
			text, err := yaml.Marshal(pair[1])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(pair[0], string(text)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", part, got.Name, diff)
			}
		}
	}
}

// What fails does not keep the rest from being done, and what another did
// first is no failure.
func TestApplyGoesOn(t *testing.T) {
	t.Parallel()
	b := newPool(t)
	b.add("old", "n1", "placeholder", "policy", faultserver.Evicted("DeadlineExceeded"))
	plan, _, err := b.pool.Plan(t.Context(), b.nodes, func(int) int { return 3 })
	if err != nil {
		t.Fatal(err)
	}
	b.add("placeholder-warm-1", "", "placeholder", "policy") // by another, in between
	b.Fail(1, "create", "pods", faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota"))
	err = b.pool.Apply(t.Context(), plan, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "creating placeholder ci/placeholder-warm-0: exceeded quota") || strings.Contains(err.Error(), "warm-1") {
		t.Errorf("error %v", err)
	}
	if got := b.names(); got != "placeholder-warm-1 placeholder-warm-2" {
		t.Errorf("left are %s", got)
	}
	// To be renewed, but gone, or another by now.
	b.clock.pass(40 * time.Second)
	plan, _, err = b.pool.Plan(t.Context(), b.nodes, func(int) int { return 2 })
	if err != nil || len(plan.Renew) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	plan.Renew[0].UID = "another"
	plan.Renew[1].Name = "gone"
	if err := b.pool.Apply(t.Context(), plan, time.Hour); err != nil {
		t.Error(err)
	}
	for _, pod := range b.Pods() {
		if pod.Annotations["wanted"] > "2026-11-30T12:01:00Z" {
			t.Errorf("%s was renewed", pod.Name)
		}
	}
}

// Two who want different numbers keep the greater one, and touch nothing of
// each other's; when the greater one goes, the other's number remains.
func TestTwoKeepersDoNotFight(t *testing.T) {
	t.Parallel()
	b := newPool(t)
	b.SetNode("n3", true)
	other := capacity.NewPool(b.client, time.Minute, b.clock, marks(), capacity.Template{Namespace: namespace, Image: "pause:1"})
	b.apply(t, b.pool, 1)
	b.apply(t, other, 3)
	for i, pod := range b.Pods() {
		b.Apply(faultserver.Change(func(p *corev1.Pod) {
			if p.Name == pod.Name {
				p.Spec.NodeName = []string{"n1", "n2", "n3"}[i]
			}
		}))
	}
	before := b.Pods()
	for range 60 { // ten minutes
		b.clock.pass(10 * time.Second)
		b.apply(t, b.pool, 1)
		b.apply(t, other, 3)
	}
	after := b.Pods()
	if len(before) != 3 || len(after) != 3 {
		t.Fatalf("%d placeholders, later %d", len(before), len(after))
	}
	for i := range before {
		if before[i].UID != after[i].UID {
			t.Errorf("%s was made again", before[i].Name)
		}
	}
	if n := b.Requests().Count("delete", "pods"); n != 0 {
		t.Errorf("%d placeholders were deleted", n)
	}
	for range 7 {
		b.clock.pass(10 * time.Second)
		b.apply(t, b.pool, 1)
	}
	if left := b.Pods(); len(left) != 1 {
		t.Errorf("left are %s", b.names())
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	b := newPool(t)
	_, version, err := b.pool.Plan(t.Context(), b.nodes, func(int) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan error, 1)
	go func() { seen <- b.pool.Changed(t.Context(), version) }()
	b.add("j", "n1", "job", "")
	if err := <-seen; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.OnWatch(func(int) faultserver.WatchPlan { return faultserver.WatchPlan{Silent: true} })
	go func() { seen <- b.pool.Changed(ctx, version) }()
	cancel()
	if err := <-seen; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("ended by its context: %v", err)
	}
	b.OnWatch(func(int) faultserver.WatchPlan { return faultserver.WatchPlan{Expired: true} })
	if err := b.pool.Changed(t.Context(), version); err == nil {
		t.Error("a watch that ends is taken for a change")
	}
}
