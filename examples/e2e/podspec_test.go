//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedpolicy "k8s.io/client-go/kubernetes/typed/policy/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// podConfig is the Bed's configuration with keys of [kubernetes] and, after
// them, further tables.
func podConfig(t *testing.T, keys, tables string) string {
	t.Helper()
	path, err := bed.WriteConfig(testbed.Namespace, tables)
	if err != nil {
		t.Fatal(err)
	}
	if keys != "" {
		replaceInFile(t, path, `pull_policy = "if-not-present"`, "pull_policy = \"if-not-present\"\n"+keys)
	}
	return path
}

func withFlag(j *job.Job, name string) *job.Job {
	j.Variables = append(j.Variables, job.Variable{Key: name, Value: "true", Public: true})
	return j
}

// A job whose image has no root works in the repository that the helper made,
// in all the ways that say so.
func TestNonRootJobs(t *testing.T) {
	script := []string{
		"id -u", "test $(id -u) != 0", "git status --short && echo status-works", "echo x >hello.txt", "mkdir -p new/deep && echo y >new/deep/file",
		"git config --global user.name Job && git config --global user.email job@example.com", "git commit -qam changed && git log -1 --format=%s",
		`touch "$HOME/file" && mktemp`,
	}
	for name, test := range map[string]struct{ image, keys, tables, flag, path string }{
		"user of the image by name":   {image: "nonroot"},
		"user by number and fs_group": {image: "debian", tables: "[kubernetes.pod_security_context]\nfs_group = 2000\n[kubernetes.build_container_security_context]\nrun_as_user = 1234\nrun_as_group = 1234\nrun_as_non_root = true\n"},
		"everything without root": {image: "nonroot-number", keys: "allow_privilege_escalation = false\n",
			tables: "[kubernetes.pod_security_context]\nrun_as_user = 1000\nrun_as_group = 1000\nfs_group = 1000\nrun_as_non_root = true\nseccomp_profile = { type = \"RuntimeDefault\" }\n[kubernetes.build_container_security_context.capabilities]\ndrop = [\"ALL\"]\n[kubernetes.helper_container_security_context.capabilities]\ndrop = [\"ALL\"]\n"},
		"a folder that the job chooses": {image: "nonroot", path: "/builds/a/b c/d"},
		"files of the build's user":     {image: "nonroot", flag: "FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := script
			if test.flag != "" {
				// The helper, which is root, has given the files away; nobody
				// else can write to them.
				lines = append([]string{`stat -c '%U %a' hello.txt`, `test "$(stat -c '%u %a' hello.txt)" = "$(id -u) 644"`}, lines...)
			}
			j := bed.Job(lines...)
			j.Image.Name = bed.Image(test.image)
			j.Artifacts = []job.Artifact{{Name: "made", Paths: []string{"new/"}, When: "on_success", Type: "archive", Format: "zip"}}
			if test.flag != "" {
				j = withFlag(j, test.flag)
			}
			if test.path != "" {
				j.Variables = append(j.Variables, job.Variable{Key: "GIT_CLONE_PATH", Value: test.path, Public: true})
			}
			out := runJobWith(t, podConfig(t, test.keys, test.tables), j, runner.Options{})
			wantPassed(t, out)
			wantLog(t, out, "status-works", "changed\n")
			if archive, err := bed.Artifacts(j); err != nil || archive.Size == 0 {
				t.Errorf("artifacts: %+v, error %v", archive, err)
			}
		})
	}
}

// A folder of builds that the job's user cannot write to is told before the
// job's first stage, once.
func TestBuildsFolderThatCannotBeWrittenTo(t *testing.T) {
	config := podConfig(t, "", "[[kubernetes.volumes.host_path]]\nname = \"roots\"\nhost_path = \"/opt\"\nmount_path = \"/builds\"\n")
	j := withFlag(testbed.WithoutSources(bed.Job("true")), "FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR")
	j.Image.Name = bed.Image("nonroot")
	out := runJobWith(t, config, j, runner.Options{})
	if out.Status != runner.Failed || out.Attempts != 1 {
		t.Errorf("ended with %s after %d attempts; want one build failure", out.Status, out.Attempts)
	}
	wantLog(t, out, "cannot make /builds/.gitlab-build-uid-gid", "cannot create", "fs_group")
}

// Both root filesystems are read-only; the job has its own folders all the
// same.
func TestReadOnlyRootFilesystem(t *testing.T) {
	config := podConfig(t, "", `
[kubernetes.build_container_security_context]
read_only_root_filesystem = true
[kubernetes.helper_container_security_context]
read_only_root_filesystem = true
`)
	j := bed.Job("(touch /etc/x 2>&1 || true) | grep -i 'read-only'", "echo x >built", `mktemp && touch "$HOME/x"`)
	j.Cache = []job.Cache{{Key: "k", Policy: "pull-push", Paths: []string{"built"}, When: "on_success"}}
	out := runJobWith(t, config, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "Read-only file system")
}

// What nodes must be like, what they may be tainted with, and what containers
// get is what the job's Pod has on the cluster.
func TestPlacementAndResources(t *testing.T) {
	config := podConfig(t, `
cap_add = ["SYS_PTRACE"]
pod_disruption_budget = true
dns_policy = "default"
host_aliases = [{ ip = "10.255.0.7", hostnames = ["named.example.com"] }]
pod_termination_grace_period_seconds = 7
pod_cpu_request = "100m"
pod_memory_limit = "512Mi"
container_lifecycle = { post_start = { exec = { command = ["sh", "-c", "echo started >/tmp/hook"] } } }
`, `
[kubernetes.node_selector]
"kubernetes.io/os" = "linux"
[kubernetes.node_tolerations]
"dedicated=ci" = "NoSchedule"
[[kubernetes.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms]]
match_expressions = [{ key = "kubernetes.io/hostname", operator = "Exists" }]
`)
	gate := safe(t.Name())
	j := testbed.WithoutSources(bed.Job("grep named.example.com /etc/hosts", "cat /tmp/hook", bed.Gate(gate)))
	defer bed.Open(gate)
	wait := start(t, config, j, runner.Options{})
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Fatal(err)
	}
	found, err := podOf(limited(t, time.Minute), admin(t), j.ID)
	if err != nil || found == nil {
		t.Fatalf("the Pod: %v, %v", found, err)
	}
	tolerated := false
	for _, toleration := range found.Spec.Tolerations {
		tolerated = tolerated || toleration.Key == "dedicated" && toleration.Value == "ci" && toleration.Operator == corev1.TolerationOpEqual
	}
	if !tolerated || found.Spec.NodeSelector["kubernetes.io/os"] != "linux" || *found.Spec.TerminationGracePeriodSeconds != 7 || len(found.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("the Pod is %+v", found.Spec)
	}
	if whole := found.Spec.Resources; whole == nil || whole.Limits.Memory().String() != "512Mi" || whole.Requests.Cpu().String() != "100m" {
		t.Errorf("resources of the Pod: %+v", whole)
	}
	budgets := budgetsOf(t, found.Namespace)
	if len(budgets) != 1 || budgets[0].Name != found.Name || len(budgets[0].OwnerReferences) != 1 || budgets[0].OwnerReferences[0].UID != found.UID {
		t.Errorf("budgets %+v, want one of the Pod's", budgets)
	}
	bed.Open(gate)
	out := wait()
	wantPassed(t, out)
	wantLog(t, out, "named.example.com", "started\n")
	wantNoPods(t, j.ID)
	if err := testbed.Until(limited(t, time.Minute), "the budget to go with its Pod", time.Minute, func(context.Context) (bool, error) {
		return len(budgetsOf(t, found.Namespace)) == 0, nil
	}); err != nil {
		t.Error(err)
	}
}

func budgetsOf(t *testing.T, namespace string) []policyv1.PodDisruptionBudget {
	t.Helper()
	client := clientOf(t, typedpolicy.NewForConfig)
	list, err := client.PodDisruptionBudgets(namespace).List(limited(t, time.Minute), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// A selector that no node fulfils leaves the job without a node, and says so.
func TestSelectorWithoutNode(t *testing.T) {
	config := podConfig(t, "", "[kubernetes.node_selector]\n\"example.com/no\" = \"such\"\n[wait]\nnode = \"5s\"\n")
	out := runJobWith(t, config, testbed.WithoutSources(bed.Job("true")), runner.Options{})
	wantBuildFailureOnce(t, out, "ERROR: no node for the job after 5 s: ", "match Pod's node affinity/selector")
}

// Volumes are in every container, at places that the job's variables name; one
// at the builds' folder takes its place, and is shared where it outlives Pods.
func TestVolumes(t *testing.T) {
	client := admin(t)
	object := metav1.ObjectMeta{Name: "e2e-files", Namespace: testbed.Namespace}
	secret := metav1.ObjectMeta{Name: "e2e-secret", Namespace: testbed.Namespace}
	if _, err := client.ConfigMaps(testbed.Namespace).Create(limited(t, time.Minute), &corev1.ConfigMap{ObjectMeta: object, Data: map[string]string{"a": "from-the-map"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Secrets(testbed.Namespace).Create(limited(t, time.Minute), &corev1.Secret{ObjectMeta: secret, StringData: map[string]string{"b": "from-the-secret"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.ConfigMaps(testbed.Namespace).Delete(limited(t, time.Minute), object.Name, metav1.DeleteOptions{})
		_ = client.Secrets(testbed.Namespace).Delete(limited(t, time.Minute), secret.Name, metav1.DeleteOptions{})
	})
	config := podConfig(t, "", `
[[kubernetes.volumes.config_map]]
name = "e2e-files"
mount_path = "/etc/$WHERE"
items = { a = "file" }
read_only = true
[[kubernetes.volumes.secret]]
name = "e2e-secret"
mount_path = "/etc/secret"
[[kubernetes.volumes.empty_dir]]
name = "memory"
mount_path = "/memory"
medium = "Memory"
size_limit = "16Mi"
[[kubernetes.volumes.host_path]]
name = "all-builds"
host_path = "/tmp"
mount_path = "/builds"
`)
	j := bed.Job("cat /etc/from-a-job/file; echo", "cat /etc/secret/b; echo", "grep ' /memory ' /proc/mounts | cut -d' ' -f3", "pwd", "git log -1 --format=%s", "rm -rf ../../../../*")
	j.Image.Name = bed.Image("debian")
	j.Variables = append(j.Variables, job.Variable{Key: "WHERE", Value: "from-a-job", Public: true})
	out := runJobWith(t, config, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "from-the-map\n", "from-the-secret\n", "tmpfs\n")
	// As the kubernetes executor does: TOKEN/SLOT/project.
	if !strings.Contains(plain(out.Log), "repository in /builds/testbedto/") {
		t.Error("the path of a shared folder does not show the runner and its slot")
	}
}

// Patches change the Pod with the job's flag for them, and are refused where
// they would let jobs share a node.
func TestPodSpecPatches(t *testing.T) {
	const patches = `
[[kubernetes.pod_spec]]
name = "a variable"
patch = '''
hostname: patched-name
containers: [{ name: build, env: [{ name: PATCHED, value: "yes" }] }]
'''
[[kubernetes.pod_spec]]
name = "json"
patch_type = "json"
patch = '[{"op": "add", "path": "/hostAliases", "value": [{"ip": "10.255.0.8", "hostnames": ["json.example.com"]}]}]'
[[kubernetes.pod_spec]]
name = "merge"
patch_type = "merge"
patch = '{"terminationGracePeriodSeconds": 9}'
`
	j := withFlag(testbed.WithoutSources(bed.Job("hostname", `echo "patched=$PATCHED"`, "grep json.example.com /etc/hosts")), "FF_USE_ADVANCED_POD_SPEC_CONFIGURATION")
	out := runJobWith(t, podConfig(t, "", patches), j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "patched-name", "patched=yes", "json.example.com")

	refused := podConfig(t, "", "[[kubernetes.pod_spec]]\nname = \"shared nodes\"\npatch_type = \"merge\"\npatch = \"affinity: null\"\n")
	j = withFlag(testbed.WithoutSources(bed.Job("true")), "FF_USE_ADVANCED_POD_SPEC_CONFIGURATION")
	out = runJobWith(t, refused, j, runner.Options{})
	wantSystemFailure(t, out, "kubernetes.pod_spec is refused", "two jobs could share a node")
	wantNoPods(t, j.ID)
}
