//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// imagesConfig is a configuration with further keys in [kubernetes] and [wait].
func imagesConfig(t *testing.T, kubernetes string) string {
	t.Helper()
	config, err := bed.WriteConfig(testbed.Namespace, "\n[wait]\nregistry = \"3s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if kubernetes != "" {
		replaceInFile(t, config, `pull_policy = "if-not-present"`, kubernetes)
	}
	return config
}

// wantBuildFailureOnce also means that no node was booted in vain twice.
func wantBuildFailureOnce(t *testing.T, out testbed.Outcome, says ...string) {
	t.Helper()
	if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 || out.ExitCode != 0 {
		t.Errorf("ended with %s, %s, exit code %d after %d attempts; want one build failure without the exit code of a script", out.Status, out.FailureReason, out.ExitCode, out.Attempts)
	}
	wantLog(t, out, says...)
}

// wantNoSecrets waits until no Secret of a job is there.
func wantNoSecrets(t *testing.T, id int64) {
	t.Helper()
	client := admin(t)
	if err := testbed.Until(context.Background(), "the job's Secrets to go", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Secrets(testbed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("tenant-executor.socialweb.computer/job-id=%d", id)})
		return err == nil && len(list.Items) == 0, err
	}); err != nil {
		t.Error(err)
	}
}

// puller makes a service account whose Pods pull with logins.
func puller(t *testing.T, name, logins string) {
	t.Helper()
	ctx, client := limited(t, time.Minute), admin(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: logins},
	}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: name}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: name}},
	}
	_, err1 := client.Secrets(testbed.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	_, err2 := client.ServiceAccounts(testbed.Namespace).Create(ctx, account, metav1.CreateOptions{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Secrets(testbed.Namespace).Delete(limited(t, time.Minute), name, metav1.DeleteOptions{})
		_ = client.ServiceAccounts(testbed.Namespace).Delete(limited(t, time.Minute), name, metav1.DeleteOptions{})
	})
}

// Images behind a login: GitLab's credentials, the job's variable, those of the
// Pod's service account alone, and none.
func TestImagesBehindALogin(t *testing.T) {
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	at := status.Registry
	logins := func(server, user string) string {
		return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, server, base64.StdEncoding.EncodeToString([]byte(user+":"+at.Password)))
	}
	auth := func(server, user string) job.Variable {
		return job.Variable{Key: "DOCKER_AUTH_CONFIG", Value: logins(server, user), Public: true}
	}
	puller(t, "e2e-puller", logins(at.Auth, at.Username))
	const ofAccount = "\nservice_account = \"e2e-puller\"\nuse_service_account_image_pull_secrets = true"
	for _, test := range []struct {
		name, registry string
		change         func(*job.Job)
		denied         bool
		more           string
	}{
		{"GitLab's credentials", at.Auth, func(j *job.Job) {
			j.Credentials = []job.Credentials{{Type: "registry", URL: at.Auth, Username: at.Username, Password: at.Password}}
		}, false, ""},
		{"the job's variable", at.Token, func(j *job.Job) { j.Variables = append(j.Variables, auth(at.Token, at.Username)) }, false, ""},
		{"the service account's", at.Auth, func(j *job.Job) { j.Variables = append(j.Variables, auth(at.Auth, at.Guest)) }, false, ofAccount},
		{"no login", at.Token, func(*job.Job) {}, true, ""},
		{"not the service account's", at.Token, func(j *job.Job) { j.Variables = append(j.Variables, auth(at.Token, at.Username)) }, true, ofAccount},
		{"the wrong one", at.Auth, func(j *job.Job) { j.Variables = append(j.Variables, auth(at.Auth, at.Guest)) }, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job("echo it runs"))
			j.Image = job.Image{Name: test.registry + "/localtenant/alpine-like:1"}
			test.change(j)
			out := runJobWith(t, imagesConfig(t, `pull_policy = "always"`+test.more), j, runner.Options{})
			if test.denied {
				wantBuildFailureOnce(t, out, "container build with image "+j.Image.Name+": the registry does not let the cluster pull it", "DOCKER_AUTH_CONFIG")
			} else {
				wantPassed(t, out)
				wantLog(t, out, "it runs\n")
			}
			if strings.Contains(out.Log, at.Password) {
				t.Error("the log shows the password")
			}
			wantNoSecrets(t, j.ID)
		})
	}
}

// While the registry is away the second policy takes the image that the node
// has; the runner notices nothing.
func TestPullPolicyFallback(t *testing.T) {
	config := imagesConfig(t, `pull_policy = ["always", "if-not-present"]`)
	// A second node may be booted, and need not be: each Pod finds the node, and
	// the images, of the one before.
	defer localtenant(t, "gateway", "set", "--hold", "5s")
	client := admin(t)
	if err := testbed.Until(context.Background(), "the cluster to be empty", time.Minute, func(ctx context.Context) (bool, error) {
		nodes, err := client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	localtenant(t, "gateway", "set", "--hold", "60s")
	wantPassed(t, runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{}))
	localtenant(t, "registry", "set", "--refuse")
	defer localtenant(t, "registry", "mend")
	j := testbed.WithoutSources(bed.Job("echo it runs"))
	out := runJobWith(t, config, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "could not be pulled with pull policy always", "Recreating the Pod with if-not-present.", "it runs\n")
	if out.Attempts != 1 {
		t.Errorf("%d attempts, want one", out.Attempts)
	}
	wantNoPods(t, j.ID)
	if nodes, err := client.Nodes().List(limited(t, time.Minute), metav1.ListOptions{}); err != nil || len(nodes.Items) != 1 {
		t.Errorf("the jobs have %d nodes, %v", len(nodes.Items), err)
	}
}

// A registry that is not well is no fault of the job, and may mend itself.
func TestRegistryTroubles(t *testing.T) {
	wantNoNodes(t) // a fresh node has the image from nobody else
	config := imagesConfig(t, `pull_policy = "always"`)
	for name, test := range map[string]struct{ fault, says string }{
		"limited": {"--rate-limited", "the registry allows no more pulls"},
		"down":    {"--down", "the registry does not answer or fails"},
	} {
		t.Run(name, func(t *testing.T) {
			localtenant(t, "registry", "set", test.fault, "--repositories", "localtenant/nonroot")
			defer localtenant(t, "registry", "mend")
			j := testbed.WithoutSources(bed.Job("true"))
			j.Image.Name = bed.Image("nonroot")
			out := runJobWith(t, config, j, runner.Options{})
			wantSystemFailure(t, out, "container build with image "+j.Image.Name+": "+test.says)
		})
	}
	t.Run("mended in time", func(t *testing.T) {
		localtenant(t, "registry", "set", "--rate-limited", "--repositories", "localtenant/nonroot")
		defer localtenant(t, "registry", "mend")
		patient, err := bed.WriteConfig(testbed.Namespace, "")
		if err != nil {
			t.Fatal(err)
		}
		replaceInFile(t, patient, `pull_policy = "if-not-present"`, `pull_policy = "always"`)
		j := testbed.WithoutSources(bed.Job("echo it runs"))
		j.Image.Name = bed.Image("nonroot")
		mended := false
		out := runJobWith(t, patient, j, runner.Options{OnLine: func(line string) {
			if !mended && strings.Contains(line, "ErrImagePull") {
				mended = true
				localtenant(t, "registry", "mend")
			}
		}})
		wantPassed(t, out)
		if !mended || out.Attempts != 1 {
			t.Errorf("mended: %v, %d attempts; want one that saw the trouble", mended, out.Attempts)
		}
	})
}

// GitLab's own helper image is what a configuration without one asks for.
// Nodes of a local tenant reach no registry but their own.
func TestDefaultHelperImage(t *testing.T) {
	config := imagesConfig(t, "")
	replaceInFile(t, config, fmt.Sprintf("helper_image = %q\n", bed.Image("helper")), "")
	out := runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	wantSystemFailure(t, out, "container helper with image registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper:x86_64-v19.4.0: the node cannot resolve the name of the registry")
}

func TestImagesOfOtherMachines(t *testing.T) {
	for image, says := range map[string]string{"foreign-arch": "no match for platform", "wrong-program": "exec format error"} {
		t.Run(image, func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job("true"))
			j.Image.Name = bed.Image(image)
			// A container of the second kind runs for a moment: prepare sees its
			// end, or the first stage does.
			out := runJob(t, j, runner.Options{})
			wantBuildFailureOnce(t, out, "container build with image "+j.Image.Name+": the image is for other machines than", says)
		})
	}
	j := testbed.WithoutSources(bed.Job("true"))
	j.Image.Name = "${NOSUCH}" + bed.Registry + "/UPPER:1"
	wantBuildFailureOnce(t, runJob(t, j, runner.Options{}), "container build with image "+bed.Registry+"/UPPER:1: this is not the name of an image", "Often a variable")
}

// An entrypoint runs where the flag says so; what it says is in the job log, once,
// and what it exports reaches the stages.
func TestEntrypointOfTheImage(t *testing.T) {
	for _, test := range []struct {
		name, image, flag string
		want              string
	}{
		{"a script without the flag", "entrypoint-script", "false", "ran=no\n"},
		{"a script", "entrypoint-script", "true", "ran=yes\n"},
		{"a program without the flag", "entrypoint-program", "false", "ran=no\n"},
		{"a program", "entrypoint-program", "true", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job(`echo "ran=${ENTRYPOINT_RAN:-no}"`))
			j.Image.Name = bed.Image(test.image)
			j.Variables = append(j.Variables, job.Variable{Key: "FF_KUBERNETES_HONOR_ENTRYPOINT", Value: test.flag, Public: true})
			out := runJob(t, j, runner.Options{})
			if test.want == "" {
				wantBuildFailureOnce(t, out, "container build with image "+j.Image.Name+" ended before anything ran in it, with exit code",
					"FF_KUBERNETES_HONOR_ENTRYPOINT", "\ngit: 'sh' is not a git command")
				return
			}
			wantPassed(t, out)
			wantLog(t, out, test.want)
			said := 0
			if test.flag == "true" {
				said = 1
			}
			if n := strings.Count(out.Log, "\nentrypoint: prepared for: "); n != said {
				t.Errorf("what the entrypoint says is in the log %d times, want %d:\n%s", n, said, out.Log)
			}
		})
	}
}

func TestUserOfTheImage(t *testing.T) {
	for _, test := range []struct {
		name, user string
		want       []string
	}{
		{"user and group", "1000:2000", []string{"ids 1000:2000\n"}},
		{"by variable", "$MY_USER", []string{"ids 1234:0\n"}},
		{"root is not listed", "0", []string{"ids 1000:1000\n", `The user "0" that the job names for container build is not used`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := testbed.WithoutSources(bed.Job(`echo "ids $(id -u):$(id -g)"`))
			if test.user == "0" {
				j.Image.Name = bed.Image("nonroot-number")
			}
			j.Variables = append(j.Variables, job.Variable{Key: "MY_USER", Value: "1234", Public: true})
			j.Image.ExecutorOptions.Kubernetes.User = test.user
			out := runJob(t, j, runner.Options{})
			wantPassed(t, out)
			wantLog(t, out, test.want...)
		})
	}
}

// What is not allowed is refused before any Pod is made.
func TestImagesThatAreNotAllowed(t *testing.T) {
	config := imagesConfig(t, "pull_policy = \"if-not-present\"\nallowed_images = [\""+bed.Registry+"/localtenant/busybox:*\"]")
	j := testbed.WithoutSources(bed.Job("echo it runs"))
	j.Image.Name = "$MINE/localtenant/busybox:1"
	j.Variables = append(j.Variables, job.Variable{Key: "MINE", Value: bed.Registry, Public: true})
	out := runJobWith(t, config, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "it runs\n")

	j = testbed.WithoutSources(bed.Job("true"))
	j.Image.Name = bed.Image("debian")
	wantBuildFailureOnce(t, runJobWith(t, config, j, runner.Options{}), "the image "+j.Image.Name+" is none of allowed_images: ")
	j = testbed.WithoutSources(bed.Job("true"))
	j.Image.PullPolicies = []string{"always"}
	wantBuildFailureOnce(t, runJobWith(t, config, j, runner.Options{}), "pull_policy always of image "+j.Image.Name+" is not allowed: only if-not-present may be named")
}
