//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// What a job may ask for beside resources reaches its Pod where the operator
// lets it, and what the Pod names works.
func TestWhatAJobMayChoose(t *testing.T) {
	config := podConfig(t, `
cap_drop = ["SETPCAP"]
cleanup_grace_period_seconds = 3
scheduler_name = "default-scheduler"
priority_class_name = "system-cluster-critical"
dns_config = { nameservers = ["10.255.0.53"], searches = ["ci.example.com"] }
pod_annotations = { "example.com/of" = "the operator, $CI_PIPELINE_ID" }
pod_annotations_overwrite_allowed = ".*"
node_selector_overwrite_allowed = "kubernetes.io/.*"
node_tolerations_overwrite_allowed = ".*"
service_account_overwrite_allowed = "default"
`, "[kubernetes.service_container_security_context]\nrun_as_user = 1234\n")
	gate := safe(t.Name())
	probe := service("busybox", "who", "HEALTHCHECK_TCP_PORT=8080")
	probe.Entrypoint = []string{"sh", "-c"}
	probe.Command = []string{"mkdir /tmp/w; id -u >/tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"}
	j := served("busybox", []job.Image{probe},
		"cat /etc/resolv.conf", "echo service runs as $(wget -qO- http://who:8080/)", "grep CapBnd /proc/self/status", bed.Gate(gate))
	for name, value := range map[string]string{
		"KUBERNETES_POD_ANNOTATIONS_1": "example.com/by=the job", "KUBERNETES_NODE_SELECTOR_1": "kubernetes.io/os=linux",
		"KUBERNETES_NODE_TOLERATIONS_1": "dedicated=ci:NoSchedule", "KUBERNETES_SERVICE_ACCOUNT_OVERWRITE": "default",
	} {
		variable(j, name, value)
	}
	defer bed.Open(gate)
	wait := start(t, config, j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || found == nil {
		t.Fatalf("the Pod: %v, %v", found, err)
	}
	got := map[string]string{
		"annotation": found.Annotations["example.com/of"], "the job's": found.Annotations["example.com/by"], "selector": found.Spec.NodeSelector["kubernetes.io/os"],
		"account": found.Spec.ServiceAccountName, "scheduler": found.Spec.SchedulerName, "priority": found.Spec.PriorityClassName,
	}
	want := map[string]string{
		"annotation": "the operator, 1", "the job's": "the job", "selector": "linux",
		"account": "default", "scheduler": "default-scheduler", "priority": "system-cluster-critical",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Pod (-want +got):\n%s", diff)
	}
	if found.Spec.Priority == nil || *found.Spec.Priority != 2000000000 {
		t.Errorf("the Pod's priority is %v", found.Spec.Priority)
	}
	tolerated := false
	for _, one := range found.Spec.Tolerations {
		tolerated = tolerated || one.Key == "dedicated" && one.Value == "ci"
	}
	if !tolerated {
		t.Errorf("the Pod tolerates %+v", found.Spec.Tolerations)
	}
	graces := gracesOf(t, found)
	bed.Open(gate)
	out := wait()
	wantPassed(t, out)
	// The service heeds no TERM, so its Pod is there until the grace is over.
	if got := <-graces; !slices.Contains(got, 3) {
		t.Errorf("the Pod had %v seconds to end, want 3", got)
	}
	wantLog(t, out, "nameserver 10.255.0.53", "ci.example.com", "service runs as 1234\n")
	// Bit 8 of the bounding set is CAP_SETPCAP.
	var bits uint64
	if _, rest, found := strings.Cut(plain(out.Log), "CapBnd:\t"); found {
		_, _ = fmt.Sscanf(rest, "%x", &bits) // 0 is told below
	}
	if bits == 0 || bits&(1<<8) != 0 {
		t.Errorf("the capabilities are %x, want some without SETPCAP", bits)
	}
}

// gracesOf gives, once a Pod is gone, the graces that it had to end, in seconds.
func gracesOf(t *testing.T, pod *corev1.Pod) <-chan []int64 {
	t.Helper()
	ctx := limited(t, jobLimit)
	events, err := admin(t).Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan []int64, 1)
	go func() {
		defer events.Stop()
		var all []int64
		for e := range events.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && p.DeletionGracePeriodSeconds != nil {
				all = append(all, *p.DeletionGracePeriodSeconds)
			}
			if e.Type == watch.Deleted {
				break
			}
		}
		seen <- all
	}()
	return seen
}

// What the operator does not allow is refused before anything boots; a user is
// not taken.
func TestWhatAJobMayNotChoose(t *testing.T) {
	config := podConfig(t, `
allowed_services = ["registry.example.com/*"]
allowed_pull_policies = ["if-not-present"]
allowed_users = ["1000"]
allowed_groups = ["1000"]
`, "")
	t.Run("service", func(t *testing.T) {
		out := runJobWith(t, config, served("busybox", []job.Image{service("busybox", "who")}, "echo never"), runner.Options{})
		wantBuildFailureOnce(t, out, "is none of allowed_services: registry.example.com/*")
	})
	t.Run("pull policy", func(t *testing.T) {
		j := testbed.WithoutSources(bed.Job("echo never"))
		j.Image.PullPolicies = []string{"always"}
		wantBuildFailureOnce(t, runJobWith(t, config, j, runner.Options{}), "pull_policy always of image ", "only if-not-present may be named")
	})
	for user, says := range map[string]string{"1000:1000": "uid=1000 gid=1000", "1234:1000": `The user "1234" that the job names for container build is not used: the configuration allows 1000`} {
		t.Run("user "+user, func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job(`echo "uid=$(id -u) gid=$(id -g)"`))
			j.Image.ExecutorOptions.Kubernetes.User = user
			out := runJobWith(t, config, j, runner.Options{})
			wantPassed(t, out)
			wantLog(t, out, says)
		})
	}
}
