package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// served gives the job a service, redis:7 with the alias db, and what may be
// changed about it.
func (h *harness) served(more map[string]any) {
	service := map[string]any{"name": "redis:7", "alias": "db"}
	for name, value := range more {
		service[name] = value
	}
	h.job["services"] = []any{service}
}

func port(n int) map[string]any {
	return map[string]any{"variables": []any{map[string]any{"key": "HEALTHCHECK_TCP_PORT", "value": fmt.Sprint(n)}}}
}

// at is a time of the services' logs.
func at(milliseconds int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

// What a service gets is in Secrets, which belong to the Pod and are there
// before it.
func TestServicesGetTheirVariablesFromSecrets(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(map[string]any{"variables": []any{map[string]any{"key": "REDIS_PASSWORD", "value": "$PASSWORD"}}})
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
	pod := h.server.Pods()[0]
	secrets := h.server.Secrets()
	if len(secrets) != 2 {
		t.Fatalf("%d Secrets, want 2", len(secrets))
	}
	for _, secret := range secrets {
		if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != pod.UID || owners[0].Name != pod.Name {
			t.Errorf("Secret %s belongs to %v, not to the Pod", secret.Name, owners)
		}
	}
	if got := string(secrets[1].Data["REDIS_PASSWORD"]); got != canaryVariable {
		t.Errorf("REDIS_PASSWORD is %q", got)
	}
	var made []string
	for _, r := range h.server.Requests().Of("create", "") {
		made = append(made, r.Resource)
	}
	if want := []string{"secrets", "secrets", "pods", "pods/exec"}; !slices.Equal(made, want) {
		t.Errorf("made %v, want %v", made, want)
	}
	// Encoded is not hidden: the Pod must not have it in any form.
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), base64.StdEncoding.EncodeToString([]byte(canaryVariable))[:12]) {
		t.Error("the Pod shows the password")
	}
}

// A Docker daemon without its rights is told before anything is made, and the
// job has its turn: it may not use it.
func TestDockerDaemonWithoutRights(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(map[string]any{"name": "docker:28-dind", "alias": "docker"})
	const note = "WARNING: Service docker-docker (container docker) starts a Docker daemon without privileges, so it will end at once in most clusters. The operator has to set kubernetes.privileged, or privileged in [kubernetes.service_container_security_context], or a kubernetes.runtime_class_name that runs daemons without it."
	h.expect(h.stage("prepare"), 0, lines(note, using, ready), "")
}

func TestServiceThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.served(map[string]any{"alias": "db my_db"})
	got := h.stage("prepare")
	if got.code != buildCode || !strings.Contains(got.stdout, `the service redis:7 of the job: its alias "my_db" is no host name`) {
		t.Errorf("ended with %d:\n%s", got.code, got.stdout)
	}
	if n := len(h.server.Requests()); n != 0 {
		t.Errorf("%d requests before it was refused", n)
	}
}

// A service that ends does not fail the job, in whatever stage; its end is told
// once.
func TestServiceThatEndsIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		ends faultserver.Step
		logs []string
		want string
	}{
		{"failed", faultserver.Terminated("db", "Error", 3), []string{"starting", "cannot go on"}, lines(
			"WARNING: Service redis-db (container db, image redis:7) has ended: Error, exit code 3. The job goes on without it.",
			"[service:redis-db] starting", "[service:redis-db] cannot go on")},
		{"silently", faultserver.Terminated("db", "Error", 1), nil, lines(
			"WARNING: Service redis-db (container db, image redis:7) has ended: Error, exit code 1. The job goes on without it.",
			"It has not said anything.")},
		{"well", faultserver.Terminated("db", "Completed", 0), []string{"done"}, lines(
			"Service redis-db (container db) has ended, with exit code 0. The job goes on.")},
		{"for want of memory", faultserver.Terminated("db", "OOMKilled", 137), nil, lines(
			"WARNING: Service redis-db (container db, image redis:7) has ended: it used more memory than its limit, "+
				"which service_memory_limit sets and, where the operator allows it, the service's variable KUBERNETES_SERVICE_MEMORY_LIMIT. The job goes on without it.",
			"It has not said anything.")},
		{"for its port", faultserver.Terminated("db", "Error", 1), []string{"bind: Address already in use"}, lines(
			"WARNING: Service redis-db (container db, image redis:7) has ended: Error, exit code 1. The job goes on without it.",
			"[service:redis-db] bind: Address already in use",
			"WARNING: The port of service redis-db was taken already: all containers of a job share one network, in which each port is there once. "+
				"Have one of them listen elsewhere, by its variables or its command.")},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.served(nil)
			h.theJob()
			for i, line := range test.logs {
				h.server.Log("db", at(i), line)
			}
			h.expect(h.run("get_sources", "echo before"), 0, "before\n", "")
			h.server.Apply(test.ends)
			h.expect(h.run("build_script", "echo during"), 0, "during\n"+test.want, "")
			h.expect(h.run("after_script", "echo after"), 0, "after\n", "")
			h.expect(h.run("cleanup_file_variables", "exit 3"), buildCode, "", "")
		})
	}
}

// A long stage tells it while it runs.
func TestServiceThatEndsDuringAStage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(nil)
	h.theJob()
	open := filepath.Join(h.folder, "open")
	r := h.startRun("build_script", "echo begun; until test -e "+open+"; do sleep 0.1; done; echo done")
	r.stdout.waitFor(t, "begun")
	h.server.Apply(faultserver.Terminated("db", "Error", 1))
	r.stdout.waitFor(t, "has ended: Error, exit code 1")
	h.write("open", "")
	got := r.wait()
	if got.code != 0 || strings.Count(got.stdout, "has ended") != 1 || !strings.HasSuffix(got.stdout, "done\n") {
		t.Errorf("ended with %d:\n%s", got.code, got.stdout)
	}
}

// A service that ends before its start was seen does not keep the job waiting.
func TestServiceThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(nil)
	h.server.OnCreate(faultserver.Scheduled(node), faultserver.Running(), faultserver.Terminated("db", "Completed", 0))
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")
}

func TestServicePortIsWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it has done its work
	h.served(port(listener.Addr().(*net.TCPAddr).Port))
	h.expect(h.stage("prepare"), 0, lines(using, ready), "")

	// Late, and over a connection that breaks.
	number := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	late := newHarness(t)
	p := late.play()
	late.served(port(number))
	asked := 0
	late.server.OnExec(func(e *faultserver.Exec) {
		if len(e.Args) > 1 && e.Args[1] == "ports" {
			asked++
			switch asked {
			case 1:
				fmt.Fprintln(e.Stdout, number)
				return
			case 2:
				e.Break(faultserver.RST)
				return
			}
			return
		}
		p.exec(e)
	})
	got := late.stage("prepare")
	text := regexp.MustCompile(`after \d+ s|port \d+`).ReplaceAllString(late.plain(got.stdout), "…")
	if diff := cmp.Diff(lines(using, ready, "Waiting for services to answer: redis-db at …", "The services answer, …"), text); diff != "" || got.code != 0 {
		t.Errorf("ended with %d (-want +got):\n%s", got.code, diff)
	}
}

// silentPort is a port at which nobody listens, nor can until the test ends.
func silentPort(t *testing.T) int {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*syscall.SockaddrInet4).Port
}

func TestServiceThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	n := silentPort(t)
	h.served(port(n))
	h.settings["wait.services"] = "1s"
	for i := range 25 {
		h.server.Log("db", at(i), fmt.Sprintf("line %d", i))
	}
	got := h.stage("prepare")
	want := fmt.Sprintf("ERROR: no answer within 1 s from redis-db at port %d", n)
	if got.code != buildCode || !strings.Contains(got.stdout, want) {
		t.Errorf("ended with %d, want %q:\n%s", got.code, want, got.stdout)
	}
	if strings.Contains(got.stdout, "] line 4\x1b") || !strings.Contains(got.stdout, "] line 5\x1b") || !strings.Contains(got.stdout, "] line 24\x1b") {
		t.Errorf("the last 20 lines are not all there:\n%s", got.stdout)
	}
}

// A service that has ended will not answer.
func TestServiceThatEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	n := silentPort(t)
	h.served(port(n))
	h.server.OnCreate(faultserver.Scheduled(node), faultserver.Running(), faultserver.Terminated("db", "Error", 1))
	h.server.Log("db", at(0), "bind: Address already in use")
	got := h.stage("prepare")
	want := fmt.Sprintf("ERROR: service redis-db (image redis:7) has ended and does not answer at port %d: Error, exit code 1", n)
	if got.code != buildCode || !strings.Contains(got.stdout, want) || !strings.Contains(got.stdout, "share one network") {
		t.Errorf("ended with %d, want %q:\n%s", got.code, want, got.stdout)
	}
}

// shown are the texts of the services' lines in an output.
func shown(h *harness, text string) []string {
	var all []string
	for line := range strings.Lines(h.plain(text)) {
		if rest, ours := strings.CutPrefix(line, "[service:redis-db] "); ours {
			_, rest, _ = strings.Cut(rest, " ") // its time
			all = append(all, strings.TrimSuffix(rest, "\n"))
		}
	}
	return all
}

// What a service says is shown from its first line to the last, each once:
// across stages, between them, and over connections that break.
func TestServiceLogsAreShownOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(nil)
	h.env["CUSTOM_ENV_CI_DEBUG_SERVICES"] = "true"
	h.theJob()
	n, clock := 0, 0
	var want, got []string
	say := func(lines int, pause int) {
		for range lines {
			text := fmt.Sprintf("line %d", n)
			h.server.Log("db", at(clock), text)
			want = append(want, text)
			n++
			clock += pause
		}
	}
	say(3, 0) // before any stage
	out := h.run("prepare_script", "echo one").stdout
	if !strings.HasPrefix(h.plain(out), "[service:redis-db] 2026-03-01T12:00:00.000000000Z line 0\n") && !strings.HasPrefix(out, "one\n") {
		t.Errorf("unexpected output:\n%s", out)
	}
	got = append(got, shown(h, out)...)
	say(5, 300) // between two stages
	h.server.CutLog(2, 1)
	h.server.Fail(1, "get", "pods/log", faultserver.Reset())
	open := filepath.Join(h.folder, "open")
	r := h.startRun("build_script", "printf begun; until test -e "+open+"; do sleep 0.1; done; echo; echo done")
	r.stdout.waitFor(t, "begun")
	h.server.Wait(t, "the log is followed", func() bool { return h.server.FollowsLog("db") == 1 })
	say(4, 900)
	h.write("open", "")
	end := r.wait()
	if end.code != 0 || !strings.Contains(end.stdout, "begun\n") {
		t.Errorf("the script's line is not whole:\n%q", end.stdout)
	}
	got = append(got, shown(h, end.stdout)...)
	say(2, 0)
	h.server.Apply(faultserver.Terminated("db", "Error", 1))
	last := h.run("cleanup_file_variables", "true").stdout
	got = append(got, shown(h, last)...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the service said (-want +got):\n%s", diff)
	}
	if !strings.Contains(last, "has ended") || strings.Count(last, "line 13") != 1 {
		t.Errorf("the end of the service:\n%s", last)
	}
	if files, err := os.ReadDir(h.folder); err != nil || !slices.ContainsFunc(files, func(f os.DirEntry) bool { return f.Name() == "tenant-executor-told.json" }) {
		t.Errorf("what was shown is not remembered in the runner's folder: %v, %v", files, err)
	}
}

// A right that the driver lacks is told, and costs the job nothing else.
func TestServiceLogsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.served(nil)
	h.env["CUSTOM_ENV_CI_DEBUG_SERVICES"] = "1"
	h.theJob()
	h.server.Fail(-1, "get", "pods/log", faultserver.AnswerStatus(403, "Forbidden", "pods/log is forbidden"))
	open := filepath.Join(h.folder, "open")
	r := h.startRun("build_script", "until test -e "+open+"; do sleep 0.1; done; echo done")
	r.stdout.waitFor(t, "cannot be shown")
	h.write("open", "")
	got := r.wait()
	if got.code != 0 || !strings.Contains(got.stdout, "done\n") || strings.Count(got.stdout, "cannot be shown") != 1 {
		t.Errorf("ended with %d:\n%s", got.code, got.stdout)
	}
}

// Jobs without services, and those that do not ask for it, pay nothing.
func TestServicesCostNothingUnasked(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	h.settings["run.poll"] = "10m" // the guard's looks do not count here
	h.env["CUSTOM_ENV_CI_DEBUG_SERVICES"] = "true"
	before := len(h.server.Requests())
	h.expect(h.run("build_script", "echo done"), 0, "done\n", "")
	if n := len(h.server.Requests()) - before; n > 2 {
		t.Errorf("a stage of a job without services took %d requests:\n%s", n, h.server.Requests()[before:])
	}
}

// Nobody reads the job log any more: what services say and how they end does not
// keep the driver from ending.
func TestServicesWithoutAReader(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.settings["run.cancel_grace"], h.settings["run.silence"] = "1s", "3s"
	h.play()
	h.served(nil)
	h.env["CUSTOM_ENV_CI_DEBUG_SERVICES"] = "true"
	h.theJob()
	for i := range 2000 {
		h.server.Log("db", at(i), strings.Repeat("x", 1000))
	}
	h.server.Apply(faultserver.Terminated("db", "Error", 1))
	_, w := pipe(t)
	stage := h.startWith(w, "run", h.write("script", "touch '"+h.folder+"/begun'; sleep 1000"), "build_script")
	until(t, "the script runs", func() bool { _, err := os.Stat(h.folder + "/begun"); return err == nil })
	stage.terminate()
	if got := stage.wait(); got.code != buildCode {
		t.Errorf("exit code %d, stderr %s", got.code, got.stderr)
	}
}
