package main_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

const using = "Using tenant cluster SERVER, namespace ci, image debian:12"

const ready = "Pod POD runs on node n1 (node N, start N, exec N)"

func TestPrepareMakesOnePod(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.poll"] = "1m" // a slow machine must not add requests
	h.play()
	h.env["TENANT_EXECUTOR_POD"] = h.podName("0a1b2c")
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	pods := h.server.Pods()
	if len(pods) != 1 || pods[0].Name != h.env["TENANT_EXECUTOR_POD"] || pods[0].Namespace != namespace {
		t.Fatalf("the cluster has %d Pods; want one named %s", len(pods), h.env["TENANT_EXECUTOR_POD"])
	}
	if execs := h.server.Execs(); len(execs) != 1 || execs[0].Container != "helper" {
		t.Errorf("got %d commands; want one, in the helper", len(execs))
	}
	// The Pods there are, the Pod, its watch, the agent, and whether its node is new.
	if n := len(h.server.Requests()); n > 5 {
		t.Errorf("a start without any trouble took %d requests:\n%s", n, h.server.Requests())
	}
}

// podName is the name of the job's Pod in an attempt, as config gives it.
func (h *harness) podName(attempt string) string {
	h.t.Helper()
	answer := h.stage("config").stdout
	_, rest, _ := strings.Cut(answer, `"TENANT_EXECUTOR_POD":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name[:len(name)-len(attempt)] + attempt
}

// A name in the environment that belongs to another job is not taken.
func TestPrepareDoesNotTakeAnotherJobsName(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.env["TENANT_EXECUTOR_POD"] = "job-1-ffffffff-0a1b2c"
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	if name := h.server.Pods()[0].Name; name == h.env["TENANT_EXECUTOR_POD"] {
		t.Errorf("the Pod is named %s", name)
	}
}

func TestPrepareFailures(t *testing.T) {
	t.Parallel()
	const (
		noNode    = "0/0 nodes are available: no nodes available to schedule pods"
		noClaim   = `0/1 nodes are available: persistentvolumeclaim "files" not found. not found`
		lacks     = "The message names it. The operator has to provide it, in the namespace of the Pod or on the nodes, or to correct the [kubernetes] section of the driver's configuration."
		missing   = "failed to pull and unpack image \"registry.example.com/a:1\": not found"
		noProfile = `cannot load seccomp profile "/var/lib/kubelet/seccomp/ci.json": no such file or directory`
	)
	scheduled := faultserver.Scheduled(node)
	status := faultserver.AnswerStatus
	tests := []struct {
		name   string
		change func(*harness, *programs)
		code   int
		// pods is how many Pods are left for cleanup.
		pods int
		want []string
	}{
		{"no image", func(h *harness, _ *programs) { h.job["image"] = map[string]any{} }, buildCode, 0, []string{
			"ERROR: job 4711 names no image",
			`Add "image:" to the job, or have the operator set image in the [kubernetes] section of the driver's configuration.`}},
		{"image not in the registry", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Waiting("build", "ErrImagePull", missing))
		}, buildCode, 1, []string{using,
			"Starting on node n1: pulling",
			"ERROR: container build with image debian:12: the registry does not have the image: ErrImagePull: not found",
			"Check the image's name and tag, and whether the cluster may pull it: some registries hide what a login may not see."}},
		{"helper image not in the registry", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Waiting("helper", "ErrImagePull", missing))
		}, buildCode, 1, []string{using,
			"Starting on node n1: pulling",
			"ERROR: container helper with image helper:v19.4.0: the registry does not have the image: ErrImagePull: not found",
			"The operator has to correct helper_image in the [kubernetes] section, or to let the cluster pull it; the job's image is not at fault."}},
		{"image without a shell", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Waiting("build", "RunContainerError", `exec: "sh": executable file not found in $PATH`))
		}, buildCode, 1, []string{using,
			"Starting on node n1: pulling",
			`ERROR: container build with image debian:12: RunContainerError: exec: "sh": executable file not found in $PATH`,
			"The image needs a shell (sh) and sleep, for the architecture of the node. With FF_KUBERNETES_HONOR_ENTRYPOINT its entrypoint has to run what it is given as arguments."}},
		{"no node", func(h *harness, _ *programs) {
			h.settings["wait.node"] = "1s"
			h.server.RemoveNode(node)
			h.server.OnCreate(faultserver.Unscheduled(noNode))
		}, systemCode, 1, []string{using,
			"Waiting for a node to boot: the cluster has none",
			"ERROR: no node for the job after 1 s: the cluster has none",
			"The operator has to look at the gateway and its nodes: it may be paused, find no machine to rent, or count several Pods for one node. Where nodes only take longer to boot, raise wait.node."}},
		{"nodes that do not match", func(h *harness, _ *programs) {
			h.settings["wait.node"] = "1s"
			h.server.OnCreate(faultserver.Unscheduled("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."))
		}, buildCode, 1, []string{using,
			"ERROR: no node for the job after 1 s: the only node does not fit: 1 node(s) didn't match Pod's node affinity/selector",
			"The message is the scheduler's. Correct the job's node selector, tolerations or requests, or have the operator give the cluster nodes that fit."}},
		{"a scheduling gate", func(h *harness, _ *programs) {
			h.settings["wait.node"] = "1s"
			h.server.OnCreate(faultserver.Change(func(p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated", Message: "Scheduling is blocked due to non-empty scheduling gates"}}
			}))
		}, systemCode, 1, []string{using,
			"Waiting for a node: scheduling gate kueue.x-k8s.io/admission is not lifted yet",
			"ERROR: no node for the job after 1 s: scheduling gate kueue.x-k8s.io/admission is not lifted yet",
			"The operator has to look at what lifts the scheduling gate that the message names, such as a queue of jobs in the cluster, or raise wait.node."}},
		{"no start", func(h *harness, _ *programs) {
			h.settings["wait.start"] = "1s"
			h.server.OnCreate(scheduled, faultserver.Waiting("build", "ErrImagePull", "dial tcp: i/o timeout"))
		}, systemCode, 1, []string{using,
			"Starting on node n1: pulling",
			"Starting on node n1: ErrImagePull (container build): dial tcp: i/o timeout",
			"ERROR: the job's Pod on node n1: the Pod was still starting after 1 s: ErrImagePull (container build): dial tcp: i/o timeout",
			"The last message tells what it waited for. The operator can raise wait.start for slow registries."}},
		{"not reached", func(h *harness, _ *programs) {
			h.settings["wait.reach"] = "4s"
			h.server.Fail(-1, "create", "pods/exec", status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "error dialing backend: EOF"))
		}, systemCode, 1, []string{using,
			"ERROR: the Pod ci/POD runs, but no command reached it within 4 s: the command did not start: error dialing backend: EOF",
			"The node's connection to the cluster is down. The operator can raise wait.reach if it only needs longer."}},
		{"evicted", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Evicted("The node was low on resource: memory."))
		}, systemCode, 1, []string{using,
			"the job's Pod: the Pod ended before it ran: Evicted: The node was low on resource: memory. Nothing has run yet; recreating the Pod.",
			"the job's Pod: the Pod ended before it ran: Evicted: The node was low on resource: memory. Nothing has run yet; recreating the Pod.",
			"the job's Pod: the Pod ended before it ran: Evicted: The node was low on resource: memory. Nothing has run yet; recreating the Pod.",
			"ERROR: the job's Pod: the Pod ended before it ran: Evicted: The node was low on resource: memory.",
			nodeShort}},
		{"deleted by somebody", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Removed())
		}, systemCode, 0, []string{using,
			"the job's Pod: Pod ci/POD was deleted. Nothing has run yet; recreating the Pod.",
			"the job's Pod: Pod ci/POD-2 was deleted. Nothing has run yet; recreating the Pod.",
			"the job's Pod: Pod ci/POD-3 was deleted. Nothing has run yet; recreating the Pod.",
			"ERROR: the job's Pod: Pod ci/POD-4 was deleted",
			"Retry the job. If it happens again, the operator has to find who removes the Pods."}},
		{"helper without gitlab-runner", func(_ *harness, p *programs) { p.path = os.Getenv("PATH") }, buildCode, 1, []string{using,
			"ERROR: the helper image helper:v19.4.0 has neither gitlab-runner nor gitlab-runner-helper, so artifacts and caches would be lost",
			"The operator has to set helper_image to GitLab's gitlab-runner-helper image of the runner's version."}},
		{"no right to make Pods", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods is forbidden: User "driver" cannot create resource "pods" in API group "" in the namespace "ci"`))
		}, systemCode, 0, []string{using,
			`ERROR: the tenant cluster at https://SERVER: creating Pod ci/POD: pods is forbidden: User "driver" cannot create resource "pods" in API group "" in the namespace "ci"`,
			"The operator has to check the certificate files and the role in examples/rbac.yaml."}},
		{"over quota", func(h *harness, _ *programs) {
			h.settings["wait.node"] = "1s"
			h.server.Fail(-1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10`))
		}, systemCode, 0, []string{using,
			"Waiting for quota team of namespace ci: 10 of 10 pods used",
			"ERROR: no room for the job in namespace ci after 1 s: quota team: 10 of 10 pods used",
			"Retry the job when others in the namespace have ended. The operator can raise the quota or wait.node, or lower the runner's concurrent."}},
		{"over quota for a moment", func(h *harness, _ *programs) {
			h.server.Fail(1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: exceeded quota: team, requested: limits.memory=2Gi,pods=1, used: limits.memory=3Gi,pods=10, limited: limits.memory=4Gi,pods=10`))
		}, 0, 1, []string{using,
			"Waiting for quota team of namespace ci: 3Gi of 4Gi limits.memory used, 2Gi needed; 10 of 10 pods used",
			ready}},
		{"beyond a quota", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: exceeded quota: team, requested: limits.memory=8Gi,pods=1, used: limits.memory=0,pods=10, limited: limits.memory=4Gi,pods=10`))
		}, buildCode, 0, []string{using,
			"ERROR: the job never fits into namespace ci: 8Gi limits.memory are asked for, and quota team has 4Gi",
			"Ask for less, or have the operator raise the quota that the message names."}},
		{"a webhook that is down for a moment", func(h *harness, _ *programs) {
			h.server.Fail(1, "create", "pods", status(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "pods.policy.example.com": failed to call webhook: Post "https://hooks.default.svc:443/pods": connection refused`))
		}, 0, 1, []string{using,
			`Waiting for admission webhook pods.policy.example.com of the cluster: failed to call webhook: Post "https://hooks.default.svc:443/pods": connection refused`,
			ready}},
		{"out of a limit range", func(h *harness, _ *programs) {
			h.settings["kubernetes.memory_limit"] = "2Gi"
			h.server.Fail(-1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`))
		}, buildCode, 0, []string{using,
			`ERROR: a LimitRange of namespace ci refuses the job's Pod for container build: creating Pod ci/POD: pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi`,
			"A LimitRange of the namespace bounds what a container or a Pod may ask for (kubectl describe limitrange). Ask for what it allows, by the KUBERNETES_* variables where the operator allows them, or have the operator change the requests and limits in [kubernetes] or the LimitRange."}},
		{"a namespace that is being deleted", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: unable to create new content in namespace ci because it is being terminated`))
		}, systemCode, 0, []string{using,
			"ERROR: namespace ci is being deleted, so that nothing can be made in it",
			"The operator has to correct the configuration file."}},
		{"runtime class that is not there", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods", status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "x" is forbidden: pod rejected: RuntimeClass "kata" not found`))
		}, buildCode, 0, []string{using,
			`ERROR: the job's Pod: creating Pod ci/POD: pods "x" is forbidden: pod rejected: RuntimeClass "kata" not found`,
			"The message is the cluster's own; a setting of the [kubernetes] section causes it."}},
		{"claim that is not there", func(h *harness, _ *programs) {
			h.settings["wait.node"] = "1s"
			h.server.OnCreate(faultserver.Unscheduled(noClaim))
		}, buildCode, 1, []string{using,
			"Waiting for a node: " + `persistentvolumeclaim "files" not found. not found`,
			"ERROR: the job's Pod: the Pod was still waiting for a node after 1 s: Unschedulable: " + noClaim, lacks}},
		{"profile that the node does not have", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Waiting("build", "CreateContainerError", noProfile))
		}, buildCode, 1, []string{using,
			"Starting on node n1: pulling",
			"ERROR: container build with image debian:12: CreateContainerError: " + noProfile, lacks}},
		{"Pod that no node takes", func(h *harness, _ *programs) {
			h.server.OnCreate(scheduled, faultserver.Change(func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "AppArmor", "Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host"
			}))
		}, buildCode, 1, []string{using,
			"ERROR: node n1 does not take the job's Pod: the Pod ended before it ran: AppArmor: Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host",
			"The message is the cluster's own; a setting of the [kubernetes] section causes it."}},
		{"more than a node has", func(h *harness, _ *programs) {
			h.settings["tenant.node_cpu"] = "2"
			h.settings["kubernetes.cpu_request"] = "2500m"
			h.settings["kubernetes.memory_request"] = "64Gi"
		}, buildCode, 0, []string{
			"ERROR: the job's containers ask for 2500m of cpu, and the largest node has 2",
			"Ask for less. If nodes are larger by now, the operator can say so by node_cpu, node_memory and node_ephemeral_storage in [tenant]."}},
		{"no namespace", func(h *harness, _ *programs) {
			h.server.Fail(-1, "create", "pods", status(http.StatusNotFound, metav1.StatusReasonNotFound, `namespaces "ci" not found`))
		}, systemCode, 0, []string{using,
			`ERROR: namespace ci: creating Pod ci/POD: namespaces "ci" not found`,
			"The operator has to correct the configuration file."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			p := h.play()
			test.change(h, p)
			got := h.stage("prepare")
			if got.code != test.code || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q; want %d and nothing", got.code, got.stderr, test.code)
			}
			h.expectLines(got.stdout, test.want)
			if n := len(h.server.Pods()); n != test.pods {
				t.Errorf("%d Pods are left, want %d", n, test.pods)
			}
			h.expectNoScript(test.code)
		})
	}
}

// expectLines compares whole lines. A line that ends in "pulling" stands for
// what prepare says of a start while it goes on, which a slow machine may see
// and a quick one not.
func (h *harness) expectLines(got string, want []string) {
	h.t.Helper()
	left := strings.Split(strings.TrimSuffix(h.plain(got), "\n"), "\n")
	for _, line := range want {
		switch {
		case strings.HasSuffix(line, ": pulling"):
			if len(left) > 0 && strings.HasPrefix(left[0], line) {
				left = left[1:]
			}
		case len(left) == 0 || left[0] != line:
			h.t.Errorf("the line is missing:\n  %s\nthe output is\n%s", line, h.plain(got))
			return
		default:
			left = left[1:]
		}
	}
	if len(left) > 0 {
		h.t.Errorf("there is more than expected, from %q on:\n%s", left[0], h.plain(got))
	}
}

// The cluster's troubles that pass are not the job's.
func TestPrepareOutlivesTroubles(t *testing.T) {
	t.Parallel()
	status := faultserver.AnswerStatus
	tests := []struct {
		name   string
		change func(*harness)
		execs  int
	}{
		{"reply to create lost", func(h *harness) { h.server.Fail(1, "create", "pods", faultserver.LoseReply()) }, 1},
		{"create broken off twice", func(h *harness) { h.server.Fail(2, "create", "pods", faultserver.Abort()) }, 1},
		{"store without a leader", func(h *harness) {
			h.server.Fail(1, "create", "pods", status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed"))
		}, 1},
		{"watches closed after each event", func(h *harness) {
			h.server.OnWatch(func(int) faultserver.WatchPlan { return faultserver.WatchPlan{CloseAfter: 1} })
		}, 1},
		{"watch too old, then a reset", func(h *harness) {
			h.server.OnWatch(func(n int) faultserver.WatchPlan { return faultserver.WatchPlan{Expired: n == 1} })
			h.server.Fail(1, "watch", "pods", faultserver.Reset())
		}, 1},
		{"node not reached five times", func(h *harness) {
			h.server.Fail(5, "create", "pods/exec", status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "error dialing backend: proxy error, code 502: 502 Bad Gateway"))
		}, 6},
		{"container not found at first", func(h *harness) {
			h.server.Fail(1, "create", "pods/exec", faultserver.Answer(http.StatusNotFound, `unable to upgrade connection: container not found ("helper")`))
		}, 2},
		{"pull that fails at first", func(h *harness) {
			h.server.OnCreate(faultserver.Scheduled(node), faultserver.Waiting("build", "ErrImagePull", "toomanyrequests: slow down"), faultserver.Running())
		}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			test.change(h)
			got := h.stage("prepare")
			if got.code != 0 || !strings.HasSuffix(h.plain(got.stdout), ready+"\n") || got.stderr != "" {
				t.Errorf("ended with %d:\n%s%s", got.code, h.plain(got.stdout), got.stderr)
			}
			if n := len(h.server.Pods()); n != 1 {
				t.Errorf("%d Pods were made", n)
			}
			if n := h.server.Requests().Count("create", "pods/exec"); n != test.execs {
				t.Errorf("%d commands were asked for, want %d", n, test.execs)
			}
		})
	}
}

// A prepare that the runner ends takes its Pod with it, so that no node boots
// for nothing, and never counts as done.
func TestPrepareThatIsEnded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		steps []faultserver.Step
		until func(*harness) func() bool
		lines []string
	}{
		{"without a node", []faultserver.Step{faultserver.Unscheduled(`0/1 nodes are available: persistentvolumeclaim "files" not found.`)},
			func(h *harness) func() bool {
				return func() bool { return h.server.Requests().Count("list", "nodes") > 0 }
			},
			[]string{using, `Waiting for a node: persistentvolumeclaim "files" not found`}},
		{"while it starts", []faultserver.Step{faultserver.Scheduled(node)},
			func(h *harness) func() bool {
				return func() bool { return h.server.Requests().Count("watch", "pods") > 0 }
			},
			[]string{using}},
		{"while it is readied", []faultserver.Step{faultserver.Scheduled(node), faultserver.Running()},
			func(h *harness) func() bool { return func() bool { return len(h.server.Execs()) > 0 } },
			[]string{using}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.server.OnCreate(test.steps...)
			h.server.OnExec(func(e *faultserver.Exec) { e.WaitGone() })
			stage := h.start("prepare")
			h.server.Wait(t, "prepare waits "+test.name, test.until(h))
			for _, line := range test.lines[1:] {
				stage.stdout.waitFor(t, line)
			}
			stage.terminate()
			h.expect(stage.wait(), systemCode, lines(test.lines...), "")
			if n := len(h.server.Pods()); n != 0 {
				t.Errorf("%d Pods are left", n)
			}
		})
	}
}

// What the job's author wrote goes into annotations and labels as it may.
func TestPrepareWithOddNames(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.job["job_info"] = map[string]any{"name": "tést: [1/2] \"x\"", "project_id": 7, "project_name": strings.Repeat("long-", 20), "project_full_path": "a.b/c_d/" + strings.Repeat("x", 100)}
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	pod := h.server.Pods()[0]
	if got := pod.Annotations["job.runner.gitlab.com/name"]; got != "tést: [1/2] \"x\"" {
		t.Errorf("the job's name became %q", got)
	}
	if spec := pod.Spec; len(spec.Containers) != 2 || spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("got %d containers and restart policy %s", len(spec.Containers), spec.RestartPolicy)
	}
	for _, c := range pod.Spec.Containers {
		if len(c.Env)+len(c.EnvFrom) != 0 {
			t.Errorf("container %s has variables", c.Name)
		}
	}
}
