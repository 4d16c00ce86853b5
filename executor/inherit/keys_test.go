package inherit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// kubernetesKeys are all keys of [runners.kubernetes] (common/config.go:677-791).
func kubernetesKeys() []string {
	return []string{
		"host", "context", "cert_file", "key_file", "ca_file", "bearer_token_overwrite_allowed", "bearer_token", "image", "namespace",
		"namespace_overwrite_allowed", "namespace_per_job", "privileged", "runtime_class_name", "allow_privilege_escalation",
		"cpu_limit", "cpu_limit_overwrite_max_allowed", "cpu_request", "cpu_request_overwrite_max_allowed", "memory_limit",
		"memory_limit_overwrite_max_allowed", "memory_request", "memory_request_overwrite_max_allowed", "ephemeral_storage_limit",
		"ephemeral_storage_limit_overwrite_max_allowed", "ephemeral_storage_request",
		"ephemeral_storage_request_overwrite_max_allowed", "service_cpu_limit", "service_cpu_limit_overwrite_max_allowed",
		"service_cpu_request", "service_cpu_request_overwrite_max_allowed", "service_memory_limit",
		"service_memory_limit_overwrite_max_allowed", "service_memory_request", "service_memory_request_overwrite_max_allowed",
		"service_ephemeral_storage_limit", "service_ephemeral_storage_limit_overwrite_max_allowed",
		"service_ephemeral_storage_request", "service_ephemeral_storage_request_overwrite_max_allowed", "helper_cpu_limit",
		"helper_cpu_limit_overwrite_max_allowed", "helper_cpu_request", "helper_cpu_request_overwrite_max_allowed",
		"helper_memory_limit", "helper_memory_limit_overwrite_max_allowed", "helper_memory_request",
		"helper_memory_request_overwrite_max_allowed", "helper_ephemeral_storage_limit",
		"helper_ephemeral_storage_limit_overwrite_max_allowed", "helper_ephemeral_storage_request",
		"helper_ephemeral_storage_request_overwrite_max_allowed", "pod_cpu_limit", "pod_cpu_limit_overwrite_max_allowed",
		"pod_cpu_request", "pod_cpu_request_overwrite_max_allowed", "pod_memory_limit", "pod_memory_limit_overwrite_max_allowed",
		"pod_memory_request", "pod_memory_request_overwrite_max_allowed", "allowed_images", "allowed_pull_policies",
		"allowed_services", "allowed_users", "allowed_groups", "pull_policy", "node_selector", "node_selector_overwrite_allowed",
		"node_tolerations", "node_tolerations_overwrite_allowed", "affinity", "image_pull_secrets",
		"use_service_account_image_pull_secrets", "helper_image", "helper_image_flavor", "helper_image_autoset_arch_and_os",
		"pod_termination_grace_period_seconds", "cleanup_grace_period_seconds", "cleanup_resources_timeout", "poll_interval",
		"poll_timeout", "resource_availability_check_max_attempts", "retry_limit", "retry_backoff_max", "retry_limits", "pod_labels",
		"pod_labels_overwrite_allowed", "scheduler_name", "service_account", "service_account_overwrite_allowed",
		"automount_service_account_token", "pod_annotations", "pod_annotations_overwrite_allowed", "pod_security_context",
		"init_permissions_container_security_context", "build_container_security_context", "helper_container_security_context",
		"service_container_security_context", "volumes", "host_aliases", "services", "cap_add", "cap_drop", "suspend_pvc_size",
		"suspend_pvc_storage_class", "dns_policy", "dns_config", "container_lifecycle", "priority_class_name", "pod_spec",
		"logs_base_dir", "scripts_base_dir", "print_pod_warning_events", "pod_disruption_budget", "autoscaler",
	}
}

// Of each key of the kubernetes executor is known what becomes of it.
func TestEveryKeyIsKnown(t *testing.T) {
	k := settings.Kubernetes{}
	for _, key := range kubernetesKeys() {
		_, field := k.Field(key)
		_, moved := inherit.Moved()[key]
		known := field || moved || key == "autoscaler" || slices.ContainsFunc(inherit.Without(), func(r inherit.Row) bool { return r.Key == key })
		if !known {
			t.Errorf("nothing is known of %s", key)
		}
	}
	for _, row := range inherit.Without() {
		key, _, _ := strings.Cut(row.Key, ".")
		if !slices.Contains(kubernetesKeys(), key) || row.Note == "" {
			t.Errorf("%+v is no key of the kubernetes executor, or lacks a reason", row)
		}
	}
}
