//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	typedrbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	execerrors "k8s.io/client-go/util/exec"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// inCluster is what examples/in-cluster-runner.yaml holds.
type inCluster struct {
	namespace  corev1.Namespace
	account    corev1.ServiceAccount
	jobs       rbacv1.RoleBinding
	nodes      rbacv1.ClusterRoleBinding
	config     corev1.ConfigMap
	deployment appsv1.Deployment
}

// readManifest reads the example strictly: a field that Kubernetes does not
// know is an error.
func readManifest(t *testing.T) inCluster {
	t.Helper()
	text, err := os.ReadFile("../in-cluster-runner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var m inCluster
	for _, document := range strings.Split(string(text), "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("examples/in-cluster-runner.yaml: %v", err)
		}
		switch o := object.(type) {
		case *corev1.Namespace:
			m.namespace = *o
		case *corev1.ServiceAccount:
			m.account = *o
		case *rbacv1.RoleBinding:
			m.jobs = *o
		case *rbacv1.ClusterRoleBinding:
			m.nodes = *o
		case *corev1.ConfigMap:
			m.config = *o
		case *appsv1.Deployment:
			m.deployment = *o
		default:
			t.Fatalf("examples/in-cluster-runner.yaml has a %T", o)
		}
	}
	return m
}

// apply makes what the runner's Pod needs. For the test the images are those
// of the bed.
func (m inCluster) apply(ctx context.Context, t *testing.T, config *rest.Config) {
	t.Helper()
	client, rbac := admin(t), typedrbac.NewForConfigOrDie(config)
	m.config.Data["config.toml"] = swap(t, m.config.Data["config.toml"],
		"registry.example.com/gitlab-org/gitlab-runner-helper:x86_64-v19.4.0", bed.Image("helper")) + "\n[cleanup]\ntimeout = \"2s\"\n"
	space, options := m.namespace.Name, metav1.CreateOptions{}
	_, err1 := client.Namespaces().Create(ctx, &m.namespace, options)
	_, err2 := client.ServiceAccounts(space).Create(ctx, &m.account, options)
	_, err3 := rbac.RoleBindings(m.jobs.Namespace).Create(ctx, &m.jobs, options)
	_, err4 := rbac.ClusterRoleBindings().Create(ctx, &m.nodes, options)
	_, err5 := client.ConfigMaps(space).Create(ctx, &m.config, options)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func swap(t *testing.T, text, old, with string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not once in\n%s", old, text)
	}
	return strings.Replace(text, old, with, 1)
}

// waitForRunner is the first process of the runner's container: it waits for a
// program that plays the runner, and ends with it.
const waitForRunner = `until [ -x /tmp/runner ]; do sleep 0.2; done; mv /tmp/runner /tmp/running; /tmp/running; exit 1`

// pod is the runner's Pod with an image of the bed, which waits for a runner, and
// without the runner's own configuration.
func (m inCluster) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	spec := m.deployment.Spec.Template.Spec
	c := &spec.Containers[0]
	c.Image, c.Command, c.Args = bed.Image("busybox"), []string{"sh", "-c", waitForRunner}, nil
	// Service addresses lead nowhere on a local tenant: there the bridge is
	// the way to the apiserver.
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: bed.Address},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: "6443"})
	c.VolumeMounts = without(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "runner-config" })
	spec.Volumes = without(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "runner-config" })
	one := int64(1)
	spec.TerminationGracePeriodSeconds = &one
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "in-cluster-runner", Namespace: m.namespace.Name, Labels: m.deployment.Spec.Template.Labels},
		Spec:       spec,
	}
}

func without[T any](list []T, drop func(T) bool) []T {
	var kept []T
	for _, item := range list {
		if !drop(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// inside runs commands in the runner's Pod.
type inside struct {
	t      *testing.T
	config *rest.Config
	pod    *corev1.Pod
}

func (i inside) do(stdin io.Reader, args ...string) (string, int) {
	i.t.Helper()
	request := admin(i.t).RESTClient().Post().Namespace(i.pod.Namespace).Resource("pods").Name(i.pod.Name).SubResource("exec").
		Param("stdout", "true").Param("stderr", "true")
	for _, arg := range args {
		request.Param("command", arg)
	}
	if stdin != nil {
		request.Param("stdin", "true")
	}
	executor, err := remotecommand.NewSPDYExecutor(i.config, "POST", request.URL())
	if err != nil {
		i.t.Fatal(err)
	}
	var out lockedOutput // two goroutines write to it
	err = executor.StreamWithContext(limited(i.t, jobLimit), remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Stderr: &out})
	var exit execerrors.CodeExitError
	if errors.As(err, &exit) {
		return out.String(), exit.Code
	}
	if err != nil {
		i.t.Fatalf("%q in the runner's Pod: %v\n%s", args, err, out.String())
	}
	return out.String(), 0
}

func (i inside) put(path string, text io.Reader) {
	i.t.Helper()
	if out, code := i.do(text, "sh", "-c", `cat >"$1" && chmod 755 "$1"`, "sh", path); code != 0 {
		i.t.Fatalf("writing %s: %s", path, out)
	}
}

// staticDriver builds a driver that runs in an image without a C library.
func staticDriver(t *testing.T) io.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenant-executor")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "../../cmd/tenant-executor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(data)
}

// The second shape of a runner: driver and runner in a Pod of the cluster, by
// the example manifest. A job runs stage by stage from in there; a runner that is
// killed leaves nothing that the next one does not remove.
func TestRunnerInThePod(t *testing.T) {
	ctx := limited(t, 6*time.Minute)
	if net.ParseIP(bed.Address).IsLoopback() {
		t.Fatalf("%s would not show that the loopback rule is off", bed.Address)
	}
	manifest := readManifest(t)
	manifest.apply(ctx, t, adminConfig(t))
	client := admin(t)
	pod := manifest.pod(t)
	if _, err := client.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{})
	})
	in := inside{t, adminConfig(t), pod}
	in.awaitStart(ctx, 0)
	in.put("/tmp/tenant-executor", staticDriver(t))
	in.put("/tmp/script", strings.NewReader("echo hello from $(hostname); exit 7\n"))
	ids := map[string]int64{}
	for _, name := range []string{"first", "killed", "undone", "last"} {
		j := testbed.WithoutSources(bed.Job("true"))
		data, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		in.put("/tmp/"+name+".json", bytes.NewReader(data))
		ids[name] = j.ID
	}

	t.Run("a job by hand", func(t *testing.T) {
		in := in.with(t)
		stage := func(args ...string) (string, int) {
			return in.do(nil, append(append([]string{"/tmp/tenant-executor"}, args...), "--job", "/tmp/first.json")...)
		}
		if out, code := stage("prepare"); code != 0 || !strings.Contains(out, "Using tenant cluster "+bed.Address+":6443, namespace ci") {
			t.Fatalf("prepare ended with %d:\n%s", code, out)
		}
		job, err := podOf(ctx, client, ids["first"])
		if err != nil || job == nil {
			t.Fatalf("the job's Pod: %v, %v", job, err)
		}
		if out, code := stage("run", "/tmp/script", "build_script"); code != 1 || !strings.Contains(out, "hello from "+job.Name) {
			t.Errorf("run ended with %d:\n%s", code, out)
		}
		if out, code := stage("cleanup"); code != 0 || out != "" {
			t.Errorf("cleanup ended with %d:\n%s", code, out)
		}
		wantNoPods(t, ids["first"])
	})
	t.Run("the state folder", func(t *testing.T) {
		in := in.with(t)
		out, _ := in.do(nil, "/tmp/tenant-executor", "doctor", "--output", "json")
		var told struct{ Checks []diagnosis }
		if err := json.Unmarshal([]byte(out), &told); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		for _, d := range told.Checks {
			if d.Check == "state-folder" && d.State != "ok" {
				t.Errorf("doctor says %+v", d)
			}
		}
	})
	t.Run("a runner that is killed", func(t *testing.T) {
		in := in.with(t)
		in.runner("stage killed prepare >/tmp/log 2>&1; echo $? >/tmp/prepared")
		if code := in.await(ctx, "/tmp/prepared"); code != "0" {
			out, _ := in.do(nil, "cat", "/tmp/log")
			t.Fatalf("prepare ended with %s:\n%s", code, out)
		}
		in.do(nil, "sh", "-c", "kill -9 $(cat /tmp/pid)")
		in.awaitStart(ctx, 1)
		out, code := in.do(nil, "/tmp/tenant-executor", "reap", "--runner", inClusterToken, "--dry-run")
		if code != 0 || !strings.Contains(out, "runner gone") {
			t.Errorf("reap ended with %d:\n%s", code, out)
		}
		// The next runner: its first job sweeps, and its cleanup cannot reach the
		// cluster; its second job does that cleanup.
		in.runner(`stage undone prepare >/tmp/log 2>&1
			(export KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=1; stage undone cleanup) >>/tmp/log 2>&1
			stage last prepare >>/tmp/log 2>&1
			stage last cleanup >>/tmp/log 2>&1; echo $? >/tmp/cleaned`)
		if code := in.await(ctx, "/tmp/cleaned"); code != "0" {
			t.Errorf("the last cleanup ended with %s", code)
		}
		log, _ := in.do(nil, "cat", "/tmp/log")
		if strings.Contains(log, "cannot be remembered") || strings.Count(log, "runs on node") != 2 {
			t.Errorf("the jobs' logs:\n%s", log)
		}
		wantNoPods(t, ids["killed"], ids["undone"], ids["last"])
		out, code = in.do(nil, "/tmp/tenant-executor", "stats")
		if code != 0 || !strings.Contains(out, "1 abandoned") || strings.Contains(out, "running") {
			t.Errorf("stats ended with %d:\n%s", code, out)
		}
		out, code = in.do(nil, "/tmp/tenant-executor", "reap", "--runner", inClusterToken)
		if code != 0 || !strings.Contains(out, "Nothing is left over") {
			t.Errorf("reap ended with %d:\n%s", code, out)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
}

// inClusterToken is the short token of the runner that is played.
const inClusterToken = "t3_inside"

// with is for a part of the test.
func (i inside) with(t *testing.T) inside { return inside{t, i.config, i.pod} }

// awaitStart waits until the container runs that was started so many times before.
func (i inside) awaitStart(ctx context.Context, restarts int32) {
	i.t.Helper()
	if err := testbed.Until(ctx, "the runner's Pod", 2*time.Minute, func(ctx context.Context) (bool, error) {
		got, err := admin(i.t).Pods(i.pod.Namespace).Get(ctx, i.pod.Name, metav1.GetOptions{})
		if err != nil || len(got.Status.ContainerStatuses) == 0 {
			return false, err
		}
		c := got.Status.ContainerStatuses[0]
		return c.State.Running != nil && c.RestartCount >= restarts, nil
	}); err != nil {
		i.t.Fatal(err)
	}
}

// runner has the container's first process start a runner that does something and
// then waits for work. It calls the driver as the runner does.
func (i inside) runner(does string) {
	i.t.Helper()
	i.put("/tmp/runner.new", strings.NewReader("#!/bin/sh\necho $$ >/tmp/pid\n"+
		"stage() { env JOB_RESPONSE_FILE=/tmp/$1.json CUSTOM_ENV_CI_RUNNER_SHORT_TOKEN="+inClusterToken+
		" BUILD_FAILURE_EXIT_CODE=1 SYSTEM_FAILURE_EXIT_CODE=2 /tmp/tenant-executor $2; }\n"+
		does+"\nwhile :; do sleep 1; done\n"))
	if out, code := i.do(nil, "mv", "/tmp/runner.new", "/tmp/runner"); code != 0 {
		i.t.Fatal(out)
	}
}

// await waits for a file that the runner writes, and gives what it holds.
func (i inside) await(ctx context.Context, path string) string {
	i.t.Helper()
	var text string
	if err := testbed.Until(ctx, path, 3*time.Minute, func(context.Context) (bool, error) {
		out, code := i.do(nil, "cat", path)
		text = strings.TrimSpace(out)
		return code == 0 && text != "", nil
	}); err != nil {
		i.t.Fatal(err)
	}
	return text
}
