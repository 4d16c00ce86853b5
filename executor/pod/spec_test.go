package pod_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// withSettings is a plan by the text of a settings file.
func withSettings(t *testing.T, text string) pod.Plan {
	t.Helper()
	s, err := settings.Parse("f.toml", []byte(`
[cluster]
url = "https://127.0.0.1:36443"
ca_file = "/etc/x/ca.crt"
cert_file = "/etc/x/client.crt"
key_file = "/etc/x/client.key"
[kubernetes]
helper_image = "helper:1"
`+text))
	if err != nil {
		t.Fatal(err)
	}
	p := plan()
	p.Settings = s.Kubernetes
	p.Variables = job.Environment{
		"CUSTOM_ENV_CI_CONCURRENT_ID": "3", "CUSTOM_ENV_CI_PROJECT_PATH": "group/demo", "CUSTOM_ENV_UP": "..",
		"CUSTOM_ENV_" + pod.FlagPodSpec: "true",
	}
	p.ReadFile = func(path string) ([]byte, error) {
		if path == "/etc/x/patch.yaml" {
			return []byte("hostname: from-a-file\n"), nil
		}
		return nil, os.ErrNotExist
	}
	return p
}

// groups are settings files, each with the Pod's spec that it makes in
// testdata/spec.
var groups = map[string]string{
	"security": `
privileged = false
allow_privilege_escalation = false
cap_add = ["SYS_PTRACE", "MKNOD"]
cap_drop = ["MKNOD"]
runtime_class_name = "gvisor"
automount_service_account_token = true
service_account = "jobs"
[kubernetes.pod_security_context]
fs_group = 2000
run_as_user = 1000
run_as_group = 1000
run_as_non_root = true
supplemental_groups = [3000, 4000]
selinux_type = "container_t"
seccomp_profile = { type = "RuntimeDefault" }
app_armor_profile = { type = "RuntimeDefault" }
[kubernetes.build_container_security_context]
privileged = true
allow_privilege_escalation = true
run_as_user = 0
run_as_group = 0
run_as_non_root = false
read_only_root_filesystem = false
selinux_type = "spc_t"
proc_mount = "Unmasked"
seccomp_profile = { type = "Localhost", localhost_profile = "profiles/ci.json" }
app_armor_profile = { type = "Localhost", localhost_profile = "ci" }
capabilities = { add = ["SYS_ADMIN"] }
[kubernetes.helper_container_security_context]
read_only_root_filesystem = true
capabilities = { drop = ["ALL"] }
`,
	"net-raw": `cap_add = ["NET_RAW"]`,
	"placement": `
node_selector = { "kubernetes.io/arch" = "amd64" }
node_tolerations = { "dedicated=ci" = "NoSchedule", "spot" = "", "" = "NoExecute" }
priority_class_name = "ci-jobs"
scheduler_name = "other-scheduler"
[[kubernetes.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms]]
match_expressions = [{ key = "disk", operator = "In", values = ["ssd", "nvme"] }]
match_fields = [{ key = "metadata.name", operator = "NotIn", values = ["node-1"] }]
[[kubernetes.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution]]
weight = 5
preference = { match_expressions = [{ key = "cores", operator = "Gt", values = ["4"] }] }
[[kubernetes.affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution]]
weight = 10
pod_affinity_term = { topology_key = "zone", namespaces = ["db"], label_selector = { match_labels = { app = "db" } }, match_label_keys = ["team"] }
[[kubernetes.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution]]
topology_key = "kubernetes.io/hostname"
namespace_selector = {}
label_selector = { match_expressions = [{ key = "noisy", operator = "Exists" }] }
mismatch_label_keys = ["track"]
`,
	"network": `
dns_policy = "none"
dns_config = { nameservers = ["10.0.0.53"], searches = ["example.com"], options = [{ name = "ndots", value = "1" }, { name = "edns0" }] }
host_aliases = [{ ip = "10.0.0.7", hostnames = ["gitlab.example.com", "gitlab"] }]
`,
	"lifecycle": `
pod_termination_grace_period_seconds = 40
pod_cpu_request = "1"
pod_cpu_limit = "4"
pod_memory_request = "1Gi"
pod_memory_limit = "4Gi"
[kubernetes.container_lifecycle]
post_start = { exec = { command = ["touch", "/started"] } }
pre_stop = { http_get = { host = "h", path = "/p", port = 80, scheme = "HTTPS", http_headers = [{ name = "a", value = "b" }] } }
`,
	"volumes": `
[kubernetes.volumes]
host_path = [{ name = "docker", mount_path = "/var/run/docker.sock" }, { name = "tools", mount_path = "/tools", host_path = "/opt/tools", read_only = true, mount_propagation = "HostToContainer" }]
pvc = [
  { name = "maven-$CI_CONCURRENT_ID", mount_path = "/maven" },
  { name = "maven-$CI_CONCURRENT_ID", mount_path = "/$CI_PROJECT_PATH", sub_path = "${CI_PROJECT_PATH}/x", read_only = true },
  { name = "with.dots", mount_path = "/dots" },
]
config_map = [{ name = "ci", mount_path = "/etc/ci", items = { b = "b.yaml", a = "a.yaml" }, sub_path = "a.yaml" }]
secret = [{ name = "keys", mount_path = "/etc/keys", read_only = true, items = { k = "id" } }]
empty_dir = [{ name = "cache", mount_path = "/cache", medium = "Memory", size_limit = "1Gi" }]
csi = [{ name = "vault", mount_path = "/vault", driver = "d.example.com", fs_type = "ext4", read_only = true, volume_attributes = { a = "b" } }]
nfs = [{ name = "data", mount_path = "/data", server = "s", path = "/p", read_only = true }]
`,
	"builds-on-a-claim": `
[[kubernetes.volumes.pvc]]
name = "builds"
mount_path = "/builds"
`,
	"patches": `
[[kubernetes.pod_spec]]
name = "strategic"
patch = '''
hostUsers: false
containers:
- name: build
  env:
  - name: PATCHED
    value: "yes"
volumes:
- name: repo
  emptyDir: null
  ephemeral: { volumeClaimTemplate: { spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } } } }
'''
[[kubernetes.pod_spec]]
name = "merge"
patch_type = "merge"
patch = '{"setHostnameAsFQDN": false, "terminationGracePeriodSeconds": null}'
[[kubernetes.pod_spec]]
name = "json"
patch_type = "json"
patch = '[{"op": "add", "path": "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/-", "value": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]'
[[kubernetes.pod_spec]]
name = "file"
patch_path = "/etc/x/patch.yaml"
`,
	"namespace": `namespace_per_job = true`,
	"budget":    `pod_disruption_budget = true`,
}

func TestSpecGolden(t *testing.T) {
	for name, text := range groups {
		t.Run(name, func(t *testing.T) {
			built, err := withSettings(t, text).Build()
			if err != nil {
				t.Fatal(err)
			}
			var parts []any
			parts = append(parts, built.Pod.Spec)
			if built.Namespace != nil {
				parts = append(parts, built.Pod.Namespace, built.Namespace)
			}
			if built.Budget != nil {
				parts = append(parts, built.Budget)
			}
			var got strings.Builder
			for _, part := range parts {
				text, err := yaml.Marshal(part)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n")
				got.Write(text)
			}
			golden(t, filepath.Join("testdata", "spec", name+".yaml"), got.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func patchOf(kind, patch string) string {
	return "[[kubernetes.pod_spec]]\nname = \"test\"\npatch_type = \"" + kind + "\"\npatch = '''" + patch + "'''\n"
}

// What breaks the rule of one job a node, or a stage's way into its container,
// is refused before anything is made.
func TestSealRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no affinity, merge", patchOf("merge", `affinity: null`), "two jobs could share a node"},
		{"no anti-affinity, strategic", patchOf("strategic", `affinity: { podAntiAffinity: null }`), "two jobs could share a node"},
		{"another list, strategic", patchOf("strategic", `affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: zone }] } }`), "two jobs could share a node"},
		{"an emptier list, json", patchOf("json", `[{"op":"remove","path":"/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0"}]`), "two jobs could share a node"},
		{"another topology", patchOf("json", `[{"op":"replace","path":"/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey","value":"zone"}]`), "two jobs could share a node"},
		{"own namespace alone", patchOf("json", `[{"op":"remove","path":"/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/namespaceSelector"}]`), "two jobs could share a node"},
		{"node by name", patchOf("merge", `nodeName: node-1`), "nodeName"},
		{"restarts", patchOf("merge", `restartPolicy: Always`), "restartPolicy"},
		{"no helper", patchOf("json", `[{"op":"remove","path":"/containers/1"}]`), "0 containers named helper"},
		{"two builds", patchOf("json", `[{"op":"copy","from":"/containers/0","path":"/containers/-"}]`), "2 containers named build"},
		{"command", patchOf("strategic", `containers: [{ name: build, command: [sleep, inf] }]`), "command or args of container build"},
		{"args", patchOf("strategic", `containers: [{ name: helper, args: [x] }]`), "command or args of container helper"},
		{"no driver's volume", patchOf("strategic", `volumes: [{ name: tenant-executor, $patch: delete }]`), "removes the volume tenant-executor"},
		{"no mounts", patchOf("strategic", `containers: [{ name: build, volumeMounts: null }]`), "without the volume at /driver"},
		{"read-only builds", patchOf("strategic", `containers: [{ name: helper, volumeMounts: [{ mountPath: /builds, readOnly: true }] }]`), "/builds of container helper read-only"},
		{"apart", patchOf("strategic", `{ volumes: [{ name: x, emptyDir: {} }], containers: [{ name: helper, volumeMounts: [{ mountPath: /builds, name: x }] }] }`), "different volumes at /builds"},
		{"no spec", patchOf("merge", `containers: 5`), "none"},
		{"no YAML", patchOf("merge", `{`), "neither YAML nor JSON"},
		{"no operations", patchOf("json", `a: b`), "RFC 6902"},
		{"no such path", patchOf("json", `[{"op":"remove","path":"/nosuch"}]`), "nosuch"},
		{"no such file", "[[kubernetes.pod_spec]]\nname = \"test\"\npatch_path = \"/nosuch\"\n", "file does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := withSettings(t, test.text).Build()
			var f *failure.Failure
			if !errors.As(err, &f) || f.Cause != failure.Settings || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "kubernetes.pod_spec") {
				t.Errorf("error %v, want one of the settings about pod_spec with %q", err, test.want)
			}
		})
	}
}

// Without the job's flag patches stay out, as with the kubernetes executor.
func TestPatchesNeedTheFlag(t *testing.T) {
	p := withSettings(t, patchOf("merge", `hostname: patched`))
	delete(p.Variables, "CUSTOM_ENV_"+pod.FlagPodSpec)
	built, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	if built.Pod.Spec.Hostname != "" {
		t.Error("the patch was applied without the flag")
	}
}

func TestVolumeRefusals(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       failure.Cause
		says       string
	}{
		{"the driver's folder", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"/driver/x\"", failure.Settings, "/driver"},
		{"around the driver's folder", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"/driver\"", failure.Settings, "/driver"},
		{"our name", "[[kubernetes.volumes.empty_dir]]\nname = \"repo\"\nmount_path = \"/x\"", failure.Settings, "one of the Pod's own"},
		{"two of a name", "[kubernetes.volumes]\nempty_dir = [{ name = \"a\", mount_path = \"/x\" }]\nnfs = [{ name = \"a\", mount_path = \"/y\", server = \"s\", path = \"/p\" }]", failure.Settings, "two volumes named \"a\""},
		{"up by a variable", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"/x\"\nsub_path = \"$UP/y\"", failure.JobInvalid, "../y"},
		{"nowhere by a variable", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"$NOSUCH\"", failure.JobInvalid, "whole path"},
		{"no name by a variable", "[[kubernetes.volumes.pvc]]\nname = \"$NOSUCH\"\nmount_path = \"/x\"", failure.JobInvalid, "name of a volume"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := withSettings(t, test.text).Build()
			var f *failure.Failure
			if !errors.As(err, &f) || f.Cause != test.want || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %s with %q", err, test.want, test.says)
			}
		})
	}
}

func TestSharedBuilds(t *testing.T) {
	for text, want := range map[string]bool{
		"": false,
		"[[kubernetes.volumes.pvc]]\nname = \"b\"\nmount_path = \"/builds\"":        true,
		"[[kubernetes.volumes.pvc]]\nname = \"b\"\nmount_path = \"/builds/\"":       true,
		"[[kubernetes.volumes.host_path]]\nname = \"b\"\nmount_path = \"/builds\"":  true,
		"[[kubernetes.volumes.empty_dir]]\nname = \"b\"\nmount_path = \"/builds\"":  false,
		"[[kubernetes.volumes.pvc]]\nname = \"b\"\nmount_path = \"/builds/inside\"": false,
	} {
		p := withSettings(t, text)
		got, err := pod.SharedBuilds(p.Settings, p.Job, p.Variables, "/builds")
		if err != nil || got != want {
			t.Errorf("%q: shared %v, error %v; want %v", text, got, err, want)
		}
	}
}

func TestFlag(t *testing.T) {
	for text, want := range map[string]bool{"": false, "true": true, "1": true, "false": false, "0": false, "yes": false, " TRUE ": true} {
		if got := pod.Flag(job.Environment{"CUSTOM_ENV_FF_X": text}, "FF_X"); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}
