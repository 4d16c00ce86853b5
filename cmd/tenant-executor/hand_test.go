package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// person is a harness whose commands have none of what a runner hands over.
func person(t *testing.T) *harness {
	t.Helper()
	return personWith(t, func(*harness) {})
}

// personWith is a person with a job that was changed before it was prepared.
func personWith(t *testing.T, change func(*harness)) *harness {
	t.Helper()
	h := newHarness(t)
	change(h)
	h.play()
	h.theJob()
	for name := range h.env {
		if strings.HasPrefix(name, "CUSTOM_ENV_") || strings.HasSuffix(name, "EXIT_CODE") {
			delete(h.env, name)
		}
	}
	delete(h.env, "JOB_RESPONSE_FILE")
	return h
}

// byDriver runs a stage as the runner does, beside a person's commands.
func (h *harness) byDriver(stage, script string) *running {
	h.t.Helper()
	h.env["CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN"] = "runner-ab"
	h.env["JOB_RESPONSE_FILE"] = h.folder + "/response.json"
	r := h.startRun(stage, script)
	delete(h.env, "CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN")
	delete(h.env, "JOB_RESPONSE_FILE")
	return r
}

// steady is a text in which ages are one word.
func (h *harness) steady(text string) string {
	text = regexp.MustCompile(`\b\d+d\d+h\b`).ReplaceAllString(text, "DAYS")
	text = regexp.MustCompile(`\d+s\b`).ReplaceAllString(h.plain(text), "Ns")
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(regexp.MustCompile(` {2,}`).ReplaceAllString(text, "  "), "")
}

func (h *harness) expectTable(got result, want string) {
	h.t.Helper()
	got.stdout = h.steady(got.stdout)
	h.expect(got, 0, want, "")
}

// waitingJob is a job that no node has taken.
func (h *harness) waitingJob(name, id string) {
	h.server.AddPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace,
			Labels: map[string]string{domain + "component": "job", domain + "job": "key-" + name, domain + "job-id": id, domain + "runner": "other"},
			Annotations: map[string]string{
				"job.runner.gitlab.com/name": "deploy", "job.runner.gitlab.com/url": "https://gitlab.example.com/a/b/-/jobs/" + id,
			},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "build"}}},
	}, faultserver.Unscheduled("0/1 nodes are available"))
}

func TestPs(t *testing.T) {
	t.Parallel()
	h := person(t)
	ceiling := h.write("ceiling.toml", h.config()+"[tenant]\nceiling = 1\n")
	gate := h.folder + "/gate"
	stage := h.byDriver("build_script", h.waiting(gate))
	stage.stdout.waitFor(t, "step 1\n")
	h.waitingJob("job-8-x", "8")
	h.lingering()
	h.server.SetNode("n2", true)
	h.server.AddPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "job-9-x", Namespace: "team-b", Labels: map[string]string{domain + "component": "job"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "build"}}},
	}, faultserver.Scheduled("n2"), faultserver.Running())
	h.expectTable(h.stage("ps", "--config", ceiling), lines(
		"JOB  PROJECT  NAME  PHASE  NODE  AGE  STAGE  WAITS FOR",
		"4711  group/demo  unit  running  n1  Ns  build_script (Ns)  -",
		"8  a/b  deploy  waiting  -  Ns  -  a node: all 2 nodes are busy (maximum 1); place 1 of 1 in the queue",
		"",
		"PLACEHOLDER  HOLD  NODE  AGE  ENDS IN",
		"placeholder-hold-x  linger  n1  Ns  DAYS",
		"",
		"NODE  STATE  AGE  CARRIES",
		"n1  ready  -  POD",
		"n2  ready  -  a job of namespace team-b",
	))
	h.expectTable(h.stage("ps", "8", "-A", "--config", ceiling), lines(
		"NAMESPACE  JOB  PROJECT  NAME  PHASE  NODE  AGE  STAGE  WAITS FOR",
		"ci  8  a/b  deploy  waiting  -  Ns  -  a node: all 2 nodes are busy (maximum 1); place 1 of 1 in the queue",
		"",
		"NODE  STATE  AGE  CARRIES",
		"n1  ready  -  ci/POD",
		"n2  ready  -  team-b/job-9-x",
	))
	var all struct {
		Jobs []struct {
			ID    int64
			Phase string
			Stage *struct{ Name, Container string }
		}
		Placeholders, Nodes []any
	}
	got := h.stage("ps", "--output", "json", "--runner", "runner-ab")
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil || got.code != 0 {
		t.Fatalf("%v %+v", err, got)
	}
	if len(all.Jobs) != 1 || all.Jobs[0].ID != 4711 || all.Jobs[0].Stage == nil || all.Jobs[0].Stage.Container != "build" || len(all.Placeholders) != 1 || len(all.Nodes) != 2 {
		t.Errorf("%+v", all)
	}
	h.write("gate", "")
	stage.wait()
}

// A Pod that does not answer costs its stage's name, and not the list.
func TestPsWithAPodThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.server.OnExec(func(e *faultserver.Exec) { e.WaitGone() })
	got := h.stage("ps")
	if got.code != 0 || !strings.Contains(got.stdout, "the Pod does not say which stage runs") {
		t.Errorf("%+v", got)
	}
}

// A Pod that prepare has not readied yet has no stages.
func TestPodThatIsNotReadied(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.waitingJob("job-8-x", "8")
	h.server.Apply(faultserver.Scheduled(node), faultserver.Running())
	if got := h.stage("ps", "8"); got.code != 0 || !strings.Contains(got.stdout, "running") || strings.Contains(got.stdout, "does not say") {
		t.Errorf("%+v", got)
	}
	if got := h.stage("logs", "8"); got.code == 0 || !strings.Contains(got.stderr, `has no stage ""; it has none`) {
		t.Errorf("%+v", got)
	}
}

func TestPsWatches(t *testing.T) {
	t.Parallel()
	h := person(t)
	ps := h.start("ps", "--watch", "--output", "json")
	ps.stdout.waitFor(t, `"phase": "running"`)
	h.server.Down()
	ps.stderr.waitFor(t, "WARNING: the tenant cluster")
	h.server.Up(t)
	h.server.Apply(faultserver.Terminating())
	ps.stdout.waitFor(t, `"phase": "ending"`)
	ps.terminate()
	if got := ps.wait(); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// What a person asks for in vain is told with what can be done.
func TestNamingJobs(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.waitingJob("job-8-x", "8")
	h.waitingJob("job-8-y", "8")
	h.server.AddPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-like", Namespace: namespace}})
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"logs"}, "no job is named: give its id, its Pod's name or --job FILE"},
		{[]string{"logs", "5"}, "job 5 has no Pod in namespace ci"},
		{[]string{"logs", "5", "-A"}, "job 5 has no Pod in any namespace"},
		{[]string{"logs", "8"}, "name one Pod: ci/job-8-x, ci/job-8-y"},
		{[]string{"events", "job-none"}, "there is no Pod ci/job-none"},
		{[]string{"events", "other/job-none"}, "there is no Pod other/job-none"},
		{[]string{"logs", "job-like"}, "belongs to no job of this driver"},
		{[]string{"logs", "4711", "x", "y"}, "takes a job and a stage at the most"},
		{[]string{"logs", "4711", "--job", "x"}, "both JOB and --job are given"},
		{[]string{"logs", "4711"}, "has no stage \"\"; it has none"},
		{[]string{"ps", "build_script"}, `"build_script" is no job`},
		{[]string{"ps", "--output", "xml"}, `--output is "xml": use table, wide, json or yaml`},
		{[]string{"ps", "-A", "-n", "x"}, "both --namespace and --all-namespaces are given"},
	} {
		got := h.stage(test.args...)
		if got.code == 0 || !strings.Contains(got.stderr, test.want) || got.stdout != "" || strings.Contains(got.stderr, "\x1b") {
			t.Errorf("%v: %+v, want %q", test.args, got, test.want)
		}
	}
}

func TestNoRightToLookEverywhere(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.server.Fail(-1, "list", "pods", faultserver.AnswerStatus(403, metav1.StatusReasonForbidden, "no"))
	got := h.stage("ps", "-A")
	if got.code == 0 || !strings.Contains(got.stderr, "--all-namespaces needs the right to list Pods in every namespace") {
		t.Errorf("%+v", got)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	h := person(t)
	pod := h.server.Pods()[0]
	note := func(namespace, kind, name, reason, message string, ago time.Duration, count int32) {
		about := corev1.ObjectReference{Kind: kind, Name: name}
		if kind == "Pod" {
			about.UID = pod.UID
		}
		at := metav1.NewTime(time.Now().Add(-ago))
		h.server.AddEvent(corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, InvolvedObject: about, Reason: reason, Message: message,
			FirstTimestamp: at, LastTimestamp: at, Count: count, Type: "Normal",
		})
	}
	note("ci", "Pod", pod.Name, "Pulled", "the image is there", time.Minute, 1)
	note("default", "Node", node, "Starting", "kubelet starts", 2*time.Minute, 1)
	note("default", "Node", node, "Ancient", "long ago", 2*time.Hour, 1)
	note("default", "Node", "n2", "Starting", "another node", time.Minute, 1)
	got := h.stage("events", "4711")
	got.stdout = regexp.MustCompile(`\d\d:\d\d:\d\d`).ReplaceAllString(got.stdout, "TIME")
	h.expectTable(got, lines(
		"TIME  ABOUT  REASON  MESSAGE",
		"TIME  Node/n1  Starting  kubelet starts",
		"TIME  Pod/POD  Pulled  the image is there",
	))
	watch := h.start("events", "4711", "--watch", "--output", "json")
	watch.stdout.waitFor(t, "the image is there")
	note("ci", "Pod", pod.Name, "BackOff", "something new", 0, 3)
	watch.stdout.waitFor(t, "something new")
	watch.terminate()
	if got := watch.wait(); got.code != 0 || strings.Count(got.stdout, "the image is there") != 1 {
		t.Errorf("%+v", got)
	}
}

// Without the right to read the events of nodes there are those of the Pod.
func TestEventsOfThePodAlone(t *testing.T) {
	t.Parallel()
	h := person(t)
	pod := h.server.Pods()[0]
	h.server.AddEvent(corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Reason: "Pulled", LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID},
	})
	h.server.FailIn("default", "list", "events", faultserver.AnswerStatus(403, metav1.StatusReasonForbidden, "no"))
	got := h.stage("events", "4711")
	if got.code != 0 || !strings.Contains(got.stdout, "Pulled") || !strings.Contains(got.stderr, "The events of node n1 are not shown") {
		t.Errorf("%+v", got)
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	got := h.stage("render")
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	for _, part := range []string{"---\napiVersion: v1\nkind: Pod\n", "image: debian:12", "name: job-4711-", "job.runner.gitlab.com/name: unit"} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("%q is missing in\n%s", part, got.stdout)
		}
	}
	var list struct {
		Kind  string
		Items []corev1.Pod
	}
	got = h.stage("render", "--output", "json")
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || list.Kind != "List" || list.Items[len(list.Items)-1].Spec.Containers[0].Name != "build" {
		t.Errorf("%v %+v", err, got)
	}
	if n := h.server.Requests().Count("", ""); n != 0 {
		t.Errorf("%d requests to the cluster", n)
	}
}

// A shell asks with "__complete", and takes the last line for a directive.
func TestCompletion(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.waitingJob("job-8-x", "8")
	if got := h.byDriver("build_script", "exit 3").wait(); got.code != 1 {
		t.Fatalf("%+v", got)
	}
	const noFiles = ":4\n"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"logs", ""}, "4711\tgroup/demo unit, running\n8\ta/b deploy, waiting\n" + noFiles},
		{[]string{"ps", "47"}, "4711\tgroup/demo unit, running\n" + noFiles},
		{[]string{"events", "job-8"}, "job-8-x\ta/b deploy, waiting\n" + noFiles},
		{[]string{"attach", "4711", "b"}, "build_script\tbuild, ended with 3\n" + noFiles},
		{[]string{"ps", "--output", ""}, "table\nwide\njson\nyaml\n" + noFiles},
	} {
		got := h.stage(append([]string{"__complete"}, test.args...)...)
		if got.code != 0 || got.stdout != test.want {
			t.Errorf("%v: %+v, want %q", test.args, got, test.want)
		}
	}
	// A cluster that does not answer does not hold the shell up for long.
	h.server.Fail(-1, "list", "pods", faultserver.Silence())
	begun := time.Now()
	if got := h.stage("__complete", "logs", ""); got.code != 0 || got.stdout != noFiles {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if got := h.stage("completion", shell); got.code != 0 || !strings.Contains(got.stdout, "__complete") {
			t.Errorf("%s: %d %s", shell, got.code, got.stderr)
		}
	}
}

// Colours are for terminals alone, and not where NO_COLOR is set.
func TestColours(t *testing.T) {
	t.Parallel()
	h := person(t)
	h.env["TERM"] = "xterm"
	s := newSeat(t)
	c := s.sit(h, "ps", "--watch")
	s.seen.waitFor(t, "\x1b[H\x1b[2J")
	s.seen.waitFor(t, "\x1b[32mrunning\x1b[0m")
	s.types("\x03") // the terminal makes a signal of it
	s.expectGivenBack(c, 0)
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		h := person(t)
		h.env["TERM"] = "xterm"
		h.env[name] = value
		s := newSeat(t)
		c := s.sit(h, "ps")
		s.seen.waitFor(t, "running")
		s.expectGivenBack(c, 0)
		if strings.Contains(s.seen.String(), "\x1b") {
			t.Errorf("with %s=%s there are colours: %q", name, value, s.seen)
		}
	}
}
