package settings_test

import (
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// What a file can say wrong about the Pod's spec is told with the key.
func TestPodSpecRefusals(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"namespaces and placeholders", "namespace_per_job = true\n[warm]\nlinger = \"3m\"\npause_pod_image = \"pause:1\"", []string{"kubernetes.namespace_per_job is set beside warm"}},
		{"capability with prefix", `cap_add = ["CAP_SYS_ADMIN"]`, []string{"kubernetes.cap_add", "CAP_SYS_ADMIN", "NET_RAW"}},
		{"capability of a container", "[kubernetes.build_container_security_context.capabilities]\ndrop = [\"\"]", []string{"build_container_security_context.capabilities.drop"}},
		{"runtime class", `runtime_class_name = "g_visor"`, []string{"kubernetes.runtime_class_name", "g_visor"}},
		{"negative user", "[kubernetes.pod_security_context]\nrun_as_user = -1", []string{"pod_security_context.run_as_user is -1"}},
		{"root as non-root", "[kubernetes.helper_container_security_context]\nrun_as_user = 0\nrun_as_non_root = true", []string{"helper_container_security_context.run_as_user is 0"}},
		{"group too large", "[kubernetes.pod_security_context]\nsupplemental_groups = [2147483648]", []string{"supplemental_groups is 2147483648"}},
		{"seccomp type", "[kubernetes.pod_security_context.seccomp_profile]\ntype = \"runtimedefault\"", []string{"seccomp_profile.type", "RuntimeDefault, Localhost or Unconfined"}},
		{"profile without a name", "[kubernetes.build_container_security_context.app_armor_profile]\ntype = \"Localhost\"", []string{"app_armor_profile.localhost_profile is not set"}},
		{"name without its type", "[kubernetes.build_container_security_context.seccomp_profile]\ntype = \"Unconfined\"\nlocalhost_profile = \"x\"", []string{"seccomp_profile.localhost_profile is set beside type Unconfined"}},
		{"profile outside", "[kubernetes.build_container_security_context.seccomp_profile]\ntype = \"Localhost\"\nlocalhost_profile = \"../x\"", []string{"folder of profiles"}},
		{"proc_mount", "[kubernetes.build_container_security_context]\nproc_mount = \"masked\"", []string{"proc_mount is \"masked\"", "default or unmasked"}},
		{"privileged without escalation", "allow_privilege_escalation = false\n[kubernetes.build_container_security_context]\nprivileged = true", []string{"build_container_security_context", "privilege escalation"}},
		{"toleration's effect", `node_tolerations = { dedicated = "noschedule" }`, []string{"kubernetes.node_tolerations", "noschedule"}},
		{"toleration's key", `node_tolerations = { "a b=c" = "NoSchedule" }`, []string{"kubernetes.node_tolerations", "a b"}},
		{"priority class", `priority_class_name = "High!"`, []string{"kubernetes.priority_class_name"}},
		{"weight", "[[kubernetes.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution]]\nweight = 0", []string{"affinity.node_affinity has the weight 0", "1 to 100"}},
		{"operator", "[[kubernetes.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms]]\n[[kubernetes.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms.match_expressions]]\nkey = \"a\"\noperator = \"in\"\nvalues = [\"b\"]", []string{"operator \"in\"", "In, NotIn"}},
		{"no terms", "[kubernetes.affinity.node_affinity.required_during_scheduling_ignored_during_execution]", []string{"no node would do"}},
		{"topology", "[[kubernetes.affinity.pod_affinity.required_during_scheduling_ignored_during_execution]]\ntopology_key = \"\"", []string{"topology_key"}},
		{"no Gt for Pods", "[[kubernetes.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution]]\ntopology_key = \"x\"\n[[kubernetes.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution.label_selector.match_expressions]]\nkey = \"a\"\noperator = \"Gt\"\nvalues = [\"1\"]", []string{"operator \"Gt\""}},
		{"DNS policy", `dns_policy = "ClusterFirst"`, []string{"kubernetes.dns_policy", "cluster-first, default"}},
		{"no DNS at all", `dns_policy = "none"`, []string{"kubernetes.dns_config.nameservers"}},
		{"name server", "[kubernetes.dns_config]\nnameservers = [\"dns.example.com\"]", []string{"dns_config.nameservers", "IP address"}},
		{"host alias", "[[kubernetes.host_aliases]]\nip = \"10.0.0.1\"\nhostnames = [\"a_b\"]", []string{"kubernetes.host_aliases", "a_b"}},
		{"grace", `pod_termination_grace_period_seconds = -1`, []string{"pod_termination_grace_period_seconds is -1"}},
		{"no grace", `cleanup_grace_period_seconds = 0`, []string{"cleanup_grace_period_seconds is 0", "at least 1"}},
		{"empty hook", "[kubernetes.container_lifecycle.pre_stop]", []string{"container_lifecycle.pre_stop has 0"}},
		{"two hooks", "[kubernetes.container_lifecycle.pre_stop]\nexec = { command = [\"a\"] }\ntcp_socket = { port = 1 }", []string{"pre_stop has 2"}},
		{"hook's port", "[kubernetes.container_lifecycle.pre_stop]\ntcp_socket = { port = 0 }", []string{"pre_stop.tcp_socket.port is 0"}},
		{"hook's scheme", "[kubernetes.container_lifecycle.pre_stop]\nhttp_get = { port = 1, scheme = \"http\" }", []string{"http_get.scheme"}},
		{"Pod's request above limit", "pod_cpu_request = \"2\"\npod_cpu_limit = \"1\"", []string{"kubernetes.pod_cpu_request is 2"}},
		{"volume without name", "[[kubernetes.volumes.pvc]]\nmount_path = \"/x\"", []string{"kubernetes.volumes.pvc has an entry without a name"}},
		{"volume's name", "[[kubernetes.volumes.empty_dir]]\nname = \"a_b\"\nmount_path = \"/x\"", []string{"kubernetes.volumes.empty_dir a_b"}},
		{"mount path", "[[kubernetes.volumes.nfs]]\nname = \"a\"\nmount_path = \"x\"\nserver = \"s\"\npath = \"/p\"", []string{"mount_path is \"x\""}},
		{"root", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"/\"", []string{"mount_path is \"/\""}},
		{"sub path", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"/x\"\nsub_path = \"../y\"", []string{"sub_path is \"../y\""}},
		{"propagation", "[[kubernetes.volumes.host_path]]\nname = \"a\"\nmount_path = \"/x\"\nmount_propagation = \"shared\"", []string{"mount_propagation is \"shared\""}},
		{"host path by a job", "[[kubernetes.volumes.host_path]]\nname = \"a\"\nmount_path = \"/$X\"", []string{"do not choose a folder of the node"}},
		{"size", "[[kubernetes.volumes.empty_dir]]\nname = \"a\"\nmount_path = \"/x\"\nsize_limit = \"1GB\"", []string{"size_limit", "1GB"}},
		{"NFS server", "[[kubernetes.volumes.nfs]]\nname = \"a\"\nmount_path = \"/x\"\npath = \"/p\"", []string{"nfs a: server is not set"}},
		{"CSI driver", "[[kubernetes.volumes.csi]]\nname = \"a\"\nmount_path = \"/x\"", []string{"csi a: driver is not set"}},
		{"empty patch", "[[kubernetes.pod_spec]]\nname = \"a\"", []string{"kubernetes.pod_spec 1 (a) has neither"}},
		{"two patches in one", "[[kubernetes.pod_spec]]\npatch = \"a: b\"\npatch_path = \"/x\"", []string{"keep one of them"}},
		{"patch's path", "[[kubernetes.pod_spec]]\npatch_path = \"x\"", []string{"patch_path is \"x\"", "whole path"}},
		{"patch's type", "[[kubernetes.pod_spec]]\npatch = \"a: b\"\npatch_type = \"Merge\"", []string{"patch_type is \"Merge\""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := settings.Parse("f.toml", []byte(minimal+test.text+"\n"))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

// Each of the three kinds of hook is enough.
func TestHooks(t *testing.T) {
	for _, hook := range []string{`exec = { command = ["a", "b"] }`, `http_get = { port = 80, scheme = "HTTPS", path = "/x", http_headers = [{ name = "a", value = "b" }] }`, `tcp_socket = { port = 80, host = "x" }`} {
		if _, err := settings.Parse("f.toml", []byte(minimal+"[kubernetes.container_lifecycle.post_start]\n"+hook+"\n")); err != nil {
			t.Errorf("%s: %v", hook, err)
		}
	}
}

// Absent is not zero, where the cluster makes a difference of it.
func TestAbsentIsNotZero(t *testing.T) {
	s, err := settings.Parse("f.toml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	k := s.Kubernetes
	if k.Privileged != nil || k.AllowPrivilegeEscalation != nil || k.PodSecurityContext.RunAsUser != nil || k.Affinity.NodeAffinity != nil {
		t.Errorf("keys that are left out are set: %+v", k)
	}
	if k.AutomountServiceAccount == nil || *k.AutomountServiceAccount {
		t.Error("the service account's token is not off by default")
	}
}
