package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// waits has a container of each Pod wait for a reason, unless its image is
// pulled by the policy that works.
func waits(container, reason, message string, works corev1.PullPolicy) faultserver.Step {
	return faultserver.Change(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		for i := range p.Status.ContainerStatuses {
			status := &p.Status.ContainerStatuses[i]
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			if status.Name == container && p.Spec.Containers[i].ImagePullPolicy != works {
				p.Status.Phase = corev1.PodPending
				status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
			}
		}
	})
}

// The runner has three attempts; a pull policy that fails takes none of them.
func TestNextPullPolicy(t *testing.T) {
	t.Parallel()
	const down = `failed to do request: Head "https://r.example.com/v2/": dial tcp 10.0.0.1:443: connect: connection refused`
	for name, test := range map[string]struct {
		container, reason, message string
	}{
		"registry down":        {"build", "ErrImagePull", down},
		"image gone from it":   {"build", "ErrImagePull", "debian:12: not found"},
		"helper's":             {"helper", "ImagePullBackOff", "Back-off pulling image: 429 Too Many Requests"},
		"a policy never first": {"build", "ErrImageNeverPull", "Container image is not present with pull policy of Never"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			first, k8s := "always", corev1.PullIfNotPresent
			if test.reason == "ErrImageNeverPull" {
				first = "never"
			}
			h.lists = map[string][]string{"kubernetes.pull_policy": {first, "if-not-present"}}
			h.server.OnCreate(faultserver.Scheduled(node), waits(test.container, test.reason, test.message, k8s))
			got := h.stage("prepare")
			if got.code != 0 {
				t.Errorf("exit code %d, want 0:\n%s", got.code, h.plain(got.stdout))
			}
			image := "debian:12"
			if test.container == "helper" {
				image = "helper:v19.4.0"
			}
			h.expectLines(got.stdout, []string{using, "Starting on node n1: pulling",
				fmt.Sprintf("WARNING: Container %s: image %s could not be pulled with pull policy %s (%s: %s). Recreating the Pod with if-not-present.",
					test.container, image, first, test.reason, test.message),
				strings.Replace(ready, "Pod POD", "Pod POD-2", 1)})
			if pods := h.server.Pods(); len(pods) != 1 || !strings.HasSuffix(pods[0].Name, "-2") {
				t.Errorf("%d Pods are left, want the second alone", len(pods))
			}
		})
	}
}

// A container that fails by both policies leaves others as they were.
func TestPullPoliciesEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.lists = map[string][]string{"kubernetes.pull_policy": {"always", "if-not-present"}}
	h.server.OnCreate(faultserver.Scheduled(node), waits("build", "ErrImagePull", "debian:12: not found", ""))
	got := h.stage("prepare")
	if got.code != buildCode || !strings.Contains(got.stdout, "ERROR: container build with image debian:12: the registry does not have the image") {
		t.Errorf("exit code %d, want %d:\n%s", got.code, buildCode, h.plain(got.stdout))
	}
	if n := h.server.Requests().Count("create", "pods"); n != 2 {
		t.Errorf("%d Pods were made, want one for each policy", n)
	}
	for _, p := range h.server.Pods() {
		if policy := p.Spec.Containers[1].ImagePullPolicy; policy != corev1.PullAlways {
			t.Errorf("the helper's policy is %s although only the job's image failed", policy)
		}
	}
}

func TestImageFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, container, reason, message string
		code                             int
		says, remedy                     string
	}{
		{"denied", "build", "ErrImagePull", "pull access denied, insufficient_scope: authorization failed", buildCode,
			"container build with image debian:12: the registry does not let the cluster pull it: ErrImagePull: pull access denied", "DOCKER_AUTH_CONFIG"},
		{"no name", "build", "InvalidImageName", `couldn't parse image name "x:": invalid reference format`, buildCode,
			"container build with image debian:12: this is not the name of an image: InvalidImageName", "Often a variable in it has no value"},
		{"never", "build", "ErrImageNeverPull", "not present with pull policy of Never", buildCode,
			"the node does not have the image, and the pull policy is never", "pull_policy (always or if-not-present)"},
		{"other machine", "build", "ErrImagePull", "no match for platform in manifest: not found", buildCode,
			"the image is for other machines than node n1, which is amd64: ErrImagePull", "node_selector, kubernetes.io/arch"},
		{"other program", "build", "RunContainerError", "exec /bin/sh: exec format error", buildCode,
			"the image is for other machines than node n1, which is amd64: RunContainerError", "architecture"},
		{"helper denied", "helper", "ErrImagePull", "403 Forbidden", buildCode,
			"container helper with image helper:v19.4.0: the registry does not let the cluster pull it", "The operator has to correct helper_image"},
		{"limited", "build", "ErrImagePull", "429 Too Many Requests: toomanyrequests", systemCode,
			"container build with image debian:12: the registry allows no more pulls, for N s: ErrImagePull: 429", "Retry the job later"},
		{"down", "helper", "ErrImagePull", "500 Internal Server Error", systemCode,
			"container helper with image helper:v19.4.0: the registry does not answer or fails, for N s: ErrImagePull: 500", "once the registry is well"},
		{"unclear", "build", "ErrImagePull", "failed to extract layer: no space left on device", systemCode,
			"the image cannot be pulled, for N s: ErrImagePull: failed to extract", "wait.registry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.settings["wait.registry"] = "1s"
			h.server.OnCreate(faultserver.Scheduled(node), waits(test.container, test.reason, test.message, "x"))
			got := h.stage("prepare")
			text := h.plain(got.stdout)
			if got.code != test.code || !strings.Contains(text, test.says) || !strings.Contains(text, test.remedy) {
				t.Errorf("exit code %d, want %d, with %q and %q:\n%s", got.code, test.code, test.says, test.remedy, text)
			}
		})
	}
}

// auths are the logins that the Pod's Secret holds, as registry: user:password.
func (h *harness) auths() map[string]string {
	h.t.Helper()
	found := map[string]string{}
	for _, r := range h.server.Requests() {
		if r.Verb != "create" || r.Resource != "secrets" {
			continue
		}
		var secret corev1.Secret
		var config struct {
			Auths map[string]struct{ Auth string } `json:"auths"`
		}
		if err := json.Unmarshal([]byte(r.Body), &secret); err != nil {
			h.t.Fatal(err)
		}
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
			h.t.Fatal(err)
		}
		for name, entry := range config.Auths {
			text, err := base64.StdEncoding.DecodeString(entry.Auth)
			if err != nil {
				h.t.Fatal(err)
			}
			found[name] = string(text)
		}
	}
	return found
}

func dockerAuth(name, user, password string) string {
	return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, name, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// credentialHelper puts a program docker-credential-NAME on PATH.
func (h *harness) credentialHelper(name, script string) {
	h.t.Helper()
	dir := filepath.Join(h.folder, "helpers")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.env["PATH"] = dir + ":" + os.Getenv("PATH")
}

func TestLogins(t *testing.T) {
	t.Parallel()
	const image = "registry.example.com/group/app:1"
	home := func(h *harness, text string) {
		if err := os.MkdirAll(filepath.Join(h.folder, ".docker"), 0o700); err != nil {
			h.t.Fatal(err)
		}
		h.write(".docker/config.json", text)
	}
	for _, test := range []struct {
		name   string
		change func(*harness)
		want   map[string]string
		warns  string
	}{
		{"GitLab's own", func(*harness) {}, map[string]string{"registry.example.com": "u:" + canaryToken}, ""},
		{"the runner's user's before GitLab's", func(h *harness) { home(h, dockerAuth("registry.example.com", "host", "pw-host-7")) },
			map[string]string{"registry.example.com": "host:pw-host-7"}, ""},
		{"the job's before both", func(h *harness) {
			home(h, dockerAuth("registry.example.com", "host", "pw-host-7"))
			h.env["CUSTOM_ENV_DOCKER_AUTH_CONFIG"] = dockerAuth("https://Registry.example.com/v1/", "job", canaryVariable)
		}, map[string]string{"registry.example.com": "job:" + canaryVariable}, ""},
		{"a path beside its host", func(h *harness) {
			h.env["CUSTOM_ENV_DOCKER_AUTH_CONFIG"] = dockerAuth("registry.example.com/group", "job", "pw-path-7")
		}, map[string]string{"registry.example.com": "u:" + canaryToken, "registry.example.com/group": "job:pw-path-7"}, ""},
		{"none for others", func(h *harness) {
			h.env["CUSTOM_ENV_DOCKER_AUTH_CONFIG"] = dockerAuth("other.example.com", "job", "pw-other-7")
		}, map[string]string{"registry.example.com": "u:" + canaryToken}, ""},
		{"not a configuration", func(h *harness) { h.env["CUSTOM_ENV_DOCKER_AUTH_CONFIG"] = canaryVariable },
			map[string]string{"registry.example.com": "u:" + canaryToken}, "WARNING: No registry login is taken from DOCKER_AUTH_CONFIG: it is not a Docker configuration"},
		{"a helper", func(h *harness) {
			h.credentialHelper("vault", `read -r server; [ "$1 $server" = "get registry.example.com" ] || exit 9
[ -z "${CUSTOM_ENV_PASSWORD-}" ] || exit 8
echo '{"ServerURL": "x", "Username": "vault", "Secret": "pw-vault-7"}'`)
			home(h, `{"credHelpers": {"registry.example.com": "vault", "unused.example.com": "nosuch"}}`)
		}, map[string]string{"registry.example.com": "vault:pw-vault-7"}, ""},
		{"a store", func(h *harness) {
			h.credentialHelper("safe", `case $1 in
list) echo '{"registry.example.com": "a", "unused.example.com": "b"}' ;;
get) read -r server; [ "$server" = registry.example.com ] || exit 9; echo '{"Username": "safe", "Secret": "pw-safe-7"}' ;;
esac`)
			home(h, `{"credsStore": "safe"}`)
		}, map[string]string{"registry.example.com": "safe:pw-safe-7"}, ""},
		{"a helper that fails", func(h *harness) {
			h.credentialHelper("vault", "echo "+canaryVariable+"; echo "+canaryVariable+" >&2; exit 3")
			home(h, `{"credHelpers": {"registry.example.com": "vault"}}`)
		}, map[string]string{"registry.example.com": "u:" + canaryToken},
			"WARNING: No login to registry.example.com is taken from FOLDER/.docker/config.json: docker-credential-vault: it ended with exit status 3"},
		{"a helper that knows nothing", func(h *harness) {
			h.credentialHelper("vault", "echo credentials not found in native keychain; exit 1")
			home(h, `{"credHelpers": {"registry.example.com": "vault"}}`)
		}, map[string]string{"registry.example.com": "u:" + canaryToken}, ""},
		{"a helper by its path", func(h *harness) {
			h.env["CUSTOM_ENV_DOCKER_AUTH_CONFIG"] = `{"credHelpers": {"registry.example.com": "../../bin/sh"}}`
		}, map[string]string{"registry.example.com": "u:" + canaryToken}, "without a path"},
		{"a token", func(h *harness) {
			home(h, `{"auths": {"registry.example.com": {"identitytoken": "`+canaryVariable+`"}}}`)
		}, map[string]string{"registry.example.com": "u:" + canaryToken}, "is a token, which Kubernetes cannot use"},
		{"the service account's", func(h *harness) { h.settings["kubernetes.use_service_account_image_pull_secrets"] = "true" },
			map[string]string{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			h.job["image"] = map[string]any{"name": image}
			for _, verb := range []string{"create", "patch"} {
				h.server.Fail(-1, verb, "secrets", faultserver.Answer(http.StatusOK, "{}"))
			}
			test.change(h)
			got := h.stage("prepare")
			if got.code != 0 || !strings.Contains(h.plain(got.stdout), test.warns) || test.warns == "" && strings.Contains(got.stdout, "WARNING") {
				t.Errorf("exit code %d, want 0 and %q:\n%s", got.code, test.warns, h.plain(got.stdout))
			}
			if strings.Contains(got.stdout, "pw-") {
				t.Errorf("the log shows a password:\n%s", got.stdout)
			}
			if got := h.auths(); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("the Secret has %v, want %v", got, test.want)
			}
		})
	}
}

// A program for another machine is started and ends at once. Prepare may have
// seen it run.
func TestRunOfAnImageForOtherMachines(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.play()
	h.theJob()
	stage := h.startRun("build_script", h.waiting("/nowhere/gate"))
	stage.stdout.waitFor(t, "step 1\n")
	h.server.Apply(faultserver.Change(func(p *corev1.Pod) {
		for i := range p.Status.ContainerStatuses {
			if status := &p.Status.ContainerStatuses[i]; status.Name == "build" {
				status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 255, Message: "exec /bin/sh: exec format error"}}
			}
		}
	}))
	h.expect(stage.wait(), buildCode, lines("step 1",
		"ERROR: container build with image debian:12: the image is for other machines than the node: Error: exec /bin/sh: exec format error",
		"Use an image for the node's architecture, or have the operator choose nodes of the image's (node_selector, kubernetes.io/arch)."), "")
}
