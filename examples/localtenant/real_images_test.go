//go:build localtenant

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// TestRealImages has one node pull and run everything in the registry.
func TestRealImages(t *testing.T) {
	c := newCluster(t)
	c.up("--paused")
	c.run("node", "add")
	c.startPod("warm") // the node has the image of its sandboxes
	// The faults come first: what a node has, it does not pull slowly again.
	t.Run("faults", func(t *testing.T) { faultsMend(c.in(t)) })
	t.Run("jobs", func(t *testing.T) { jobImagesRun(c.in(t)) })
	t.Run("services", func(t *testing.T) { servicesAnswer(c.in(t)) })
	t.Run("logins", func(t *testing.T) { loginsCount(c.in(t)) })
}

// in is the cluster for a part of the test.
func (c *cluster) in(t *testing.T) *cluster { return &cluster{t: t, program: c.program, root: c.root} }

// container is a container of a Pod of this file: change it as a test wants.
func container(name, image string, command ...string) corev1.Container {
	return corev1.Container{Name: name, Image: image, Command: command, ImagePullPolicy: corev1.PullAlways}
}

// create makes a Pod that ends by itself.
func (c *cluster) create(name string, spec corev1.PodSpec) {
	c.t.Helper()
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.TerminationGracePeriodSeconds = new(int64(1))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := c.api().Pods("ci").Create(c.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// follow watches a Pod until done says so.
func (c *cluster) follow(name string, done func(*corev1.Pod) bool) *corev1.Pod {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	watcher, err := c.api().Pods("ci").Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		c.t.Fatal(err)
	}
	defer watcher.Stop()
	var last *corev1.Pod
	for event := range watcher.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			if last = pod; done(pod) {
				return pod
			}
		}
	}
	c.t.Fatalf("the Pod %s is not as wanted within %s: %+v", name, patience, last)
	return nil
}

// ended waits until the container called main has ended, and returns its exit
// code and log.
func (c *cluster) ended(name string) (int32, string) {
	c.t.Helper()
	var code int32
	c.follow(name, func(pod *corev1.Pod) bool {
		for _, status := range pod.Status.ContainerStatuses {
			if end := status.State.Terminated; end != nil && status.Name == "main" {
				code = end.ExitCode
				return true
			}
		}
		return false
	})
	return code, c.words(name, "main")
}

func (c *cluster) words(pod, name string) string {
	c.t.Helper()
	text, err := c.api().Pods("ci").GetLogs(pod, &corev1.PodLogOptions{Container: name}).DoRaw(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// stuck waits until a container cannot be started for a reason that contains
// the text, and returns what the kubelet says.
func (c *cluster) stuck(name, text string) string {
	c.t.Helper()
	var message string
	c.follow(name, func(pod *corev1.Pod) bool {
		for _, status := range pod.Status.ContainerStatuses {
			switch state := status.State; {
			case state.Waiting != nil:
				message = state.Waiting.Reason + ": " + state.Waiting.Message
			case state.Terminated != nil:
				message = state.Terminated.Reason + ": " + state.Terminated.Message
			}
			if strings.Contains(message, text) {
				return true
			}
		}
		return false
	})
	return message
}

// jobImagesRun runs each image as jobs do.
func jobImagesRun(c *cluster) {
	at := c.status().Registry.Plain + "/localtenant/"
	shell := func(image, script string) corev1.Container {
		return container("main", at+image+":1", "sh", "-c", script)
	}
	args := func(image string, args ...string) corev1.Container {
		made := container("main", at+image+":1")
		made.Args = args
		return made
	}
	changed := func(c corev1.Container, change func(*corev1.Container)) corev1.Container {
		change(&c)
		return c
	}
	asNonRoot := func(c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: new(true)}
	}
	tests := []struct {
		name string
		main corev1.Container
		code int32 // -1: the container cannot be started, for a reason with these words
		want []string
	}{
		{"busybox", shell("busybox", "id job"), 0, []string{"uid=1000(job)"}},
		{"debian", shell("debian", "cd /tmp && git init -q x && cd x && git status && bash --version"), 0, []string{"No commits yet", "GNU bash"}},
		{"helper", shell("helper", "gitlab-runner-helper --version; git --version"), 0, []string{"stand-in", "git version"}},
		{
			"alpine-like",
			shell("alpine-like", `. /etc/os-release; echo $ID_LIKE; readlink /bin/sh; command -v bash || echo no bash; test -L /sbin || echo own sbin; grep root: /etc/passwd; ls /usr/bin/wget /usr/bin/env /usr/bin/awk; touch /tmp/x && echo tmp`), 0,
			[]string{"alpine\n", "/bin/busybox\n", "no bash\n", "own sbin\n", "root:x:0:0:root:/root:/bin/sh\n", "/usr/bin/wget\n", "/usr/bin/env\n", "/usr/bin/awk\n", "tmp\n"},
		},
		{
			"distroless-shell",
			shell("distroless-shell", `echo shell; test -e /tmp || echo no tmp; test -e /etc/passwd || echo no users; ls; cat /etc/hostname`), 127,
			[]string{"shell\n", "no tmp\n", "no users\n", "ls: command not found", "cat: command not found"},
		},
		{"nonroot", shell("nonroot", `id; echo $HOME; pwd; touch ~/x && echo written; touch /x`), 1, []string{"uid=1000(job) gid=1000(job)", "/home/job\n/home/job\n", "written\n", "Permission denied"}},
		{
			"nonroot-number",
			changed(shell("nonroot-number", "id"), asNonRoot), 0,
			[]string{"uid=1000(job)"},
		},
		{"entrypoint-script", args("entrypoint-script", "sh", "-c", "echo ran=$ENTRYPOINT_RAN"), 0, []string{"entrypoint: prepared for: sh -c", "ran=yes"}},
		{"entrypoint-script-off", shell("entrypoint-script", "echo ran=$ENTRYPOINT_RAN"), 0, []string{"ran=\n"}},
		{"entrypoint-program", args("entrypoint-program", "sh", "-c", "true"), 1, []string{"'sh' is not a git command"}},
		{"entrypoint-program-off", shell("entrypoint-program", "git --version"), 0, []string{"git version"}},
		// runc of version 1.1 says it in the container's log.
		{"wrong-program", shell("wrong-program", "true"), 1, []string{"exec format error"}},
		{"multi-arch", args("multi-arch", "a"), 0, []string{"[a]"}},
		{
			"service-probe",
			changed(args("service-probe", "b"), func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "PROBE_DIE_AFTER", Value: "100ms"}, {Name: "PROBE_EXIT_CODE", Value: "9"}, {Name: "PROBE_LINES", Value: "2"}}
			}), 9,
			[]string{"listens on port 8080", "line 2 of 2", "ends by itself"},
		},
		{
			"redis-as-a-stranger",
			changed(args("redis", "redis-server", "--version"), func(c *corev1.Container) {
				c.SecurityContext = &corev1.SecurityContext{
					RunAsUser: new(int64(12345)), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				}
			}), 0,
			[]string{"Redis server v="},
		},
		{"foreign-arch", args("foreign-arch"), -1, []string{"no match for platform"}},
		{"nonroot-unknown", changed(shell("nonroot", "id"), asNonRoot), -1, []string{"non-numeric user"}},
	}
	for _, test := range tests {
		c.create(test.name, corev1.PodSpec{Containers: []corev1.Container{test.main}})
	}
	for _, test := range tests {
		c.t.Run(test.name, func(t *testing.T) {
			c := c.in(t)
			if test.code < 0 {
				t.Log(c.stuck(test.name, test.want[0]))
				return
			}
			code, log := c.ended(test.name)
			t.Logf("exit code %d\n%s", code, log)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, text := range test.want {
				if !strings.Contains(log, text) {
					t.Errorf("its log does not contain %q", text)
				}
			}
		})
	}
}

// servicesAnswer has a job talk to each service in its Pod.
func servicesAnswer(c *cluster) {
	at := c.status().Registry.Plain + "/localtenant/"
	for _, test := range []struct {
		name, image string
		env         []corev1.EnvVar
		client      string // image
		script      string
		want        []string
	}{
		{
			"redis", "redis", nil, "redis",
			`until redis-cli ping; do sleep 0.2; done; redis-cli set key value; redis-cli get key`, []string{"PONG\n", "OK\n", "value\n"},
		},
		{
			"postgres", "postgres", []corev1.EnvVar{{Name: "POSTGRES_PASSWORD", Value: "pass'word"}, {Name: "POSTGRES_DB", Value: "d\"b"}}, "postgres",
			`until pg_isready -h 127.0.0.1; do sleep 0.2; done
until PGPASSWORD="pass'word" psql -h 127.0.0.1 -U postgres -d 'd"b' -Atc 'select 40 + 2, current_database()'; do sleep 0.2; done
PGPASSWORD=wrong psql -h 127.0.0.1 -U postgres -c 'select 1' || echo refused`,
			[]string{"accepting connections", "42|d\"b\n", "password authentication failed", "refused\n"},
		},
		{
			"service-probe", "service-probe", []corev1.EnvVar{{Name: "GIVEN", Value: "a $VALUE"}, {Name: "PROBE_LISTEN_AFTER", Value: "1s"}}, "alpine-like",
			`until wget -qO- http://127.0.0.1:8080/; do sleep 0.2; done; wget -qO- http://127.0.0.1:8080/env/GIVEN; wget -qO- http://127.0.0.1:8080/args`,
			[]string{"service-probe on ", "a $VALUE\n", "[]\n"},
		},
	} {
		c.t.Run(test.name, func(t *testing.T) {
			c := c.in(t)
			service := container("service", at+test.image+":1")
			service.Env = test.env
			name := "with-" + test.name
			c.create(name, corev1.PodSpec{Containers: []corev1.Container{service, container("main", at+test.client+":1", "sh", "-c", test.script)}})
			code, log := c.ended(name)
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			t.Logf("job:\n%s\nservice:\n%s", log, c.words(name, "service"))
			for _, text := range test.want {
				if !strings.Contains(log, text) {
					t.Errorf("the job's log does not contain %q", text)
				}
			}
			c.deletePod(name)
		})
	}
}

// loginsCount pulls from the listeners behind a login.
func loginsCount(c *cluster) {
	registry := c.status().Registry
	for _, listener := range []struct{ name, addr, anonymous, wrong, guest string }{
		{"basic", registry.Auth, "401 Unauthorized", "401 Unauthorized", "403 Forbidden"},
		{"token", registry.Token, "insufficient_scope", "401 Unauthorized", "insufficient_scope"},
	} {
		for _, test := range []struct{ name, user, password, want string }{
			{"member", registry.Username, registry.Password, ""},
			{"anonymous", "", "", listener.anonymous},
			{"wrong", registry.Username, "wrong", listener.wrong},
			{"guest", registry.Guest, registry.Password, listener.guest},
		} {
			name := listener.name + "-" + test.name
			c.t.Run(name, func(t *testing.T) {
				c := c.in(t)
				spec := corev1.PodSpec{Containers: []corev1.Container{container("main", listener.addr+"/localtenant/alpine-like:1", "echo", "pulled")}}
				if test.user != "" {
					c.credentials(name, listener.addr, test.user, test.password)
					spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: name}}
				}
				c.create(name, spec)
				if test.want != "" {
					t.Log(c.stuck(name, test.want))
					return
				}
				if code, log := c.ended(name); code != 0 || log != "pulled\n" {
					t.Errorf("exit code %d, %q", code, log)
				}
			})
		}
	}
}

// credentials makes a Secret for pulls.
func (c *cluster) credentials(name, addr, user, password string) {
	c.t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	text, err := json.Marshal(map[string]any{"auths": map[string]any{addr: map[string]string{"auth": auth}}})
	if err != nil {
		c.t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: text},
	}
	if _, err := c.api().Secrets("ci").Create(c.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// faultsMend pulls from a registry that misbehaves, and once more when it is
// mended.
func faultsMend(c *cluster) {
	at := c.status().Registry.Plain + "/localtenant/"
	for _, test := range []struct{ fault, image, want string }{
		{"--rate-limited --repositories localtenant/alpine-like", "alpine-like", "429 Too Many Requests"},
		{"--down --repositories localtenant/distroless-*", "distroless-shell", "503 Service Unavailable"},
		{"--refuse", "nonroot", "connection refused"},
	} {
		c.t.Run(test.image, func(t *testing.T) {
			c := c.in(t)
			c.run(append([]string{"registry", "set"}, strings.Fields(test.fault)...)...)
			pod := corev1.PodSpec{Containers: []corev1.Container{container("main", at+test.image+":1", "/bin/sh", "-c", "echo pulled")}}
			c.create("during-"+test.image, pod)
			t.Log(c.stuck("during-"+test.image, test.want))
			c.run("registry", "mend")
			// Another Pod, for which the kubelet has no back-off.
			c.create("after-"+test.image, pod)
			if code, log := c.ended("after-" + test.image); code != 0 || log != "pulled\n" {
				t.Errorf("after the fault: exit code %d, %q", code, log)
			}
		})
	}
	c.t.Run("slow", func(t *testing.T) {
		c := c.in(t)
		const speed, least = 1_000_000, 2 * time.Second // service-probe's layer has more than 2 MB
		c.run("registry", "set", "--bytes-per-second", fmt.Sprint(speed))
		defer c.run("registry", "mend")
		probe := container("main", at+"service-probe:1")
		probe.Env = []corev1.EnvVar{{Name: "PROBE_DIE_AFTER", Value: "0s"}}
		began := time.Now()
		c.create("slow", corev1.PodSpec{Containers: []corev1.Container{probe}})
		_, log := c.ended("slow")
		t.Logf("after %s: %s", time.Since(began), log)
		if took := time.Since(began); took < least {
			t.Errorf("pulled in %s, which is not slow", took)
		}
	})
}
