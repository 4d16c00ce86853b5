package settings

import (
	"fmt"
	"reflect"
	"regexp"
)

// Overwrites say what a job may set by its variables. Without a key the
// variable has no effect.
type Overwrites struct {
	NamespaceOverwriteAllowed       string `toml:"namespace_overwrite_allowed" example:"^ci-" doc:"Regular expression for the namespaces that a job may choose with KUBERNETES_NAMESPACE_OVERWRITE. It need not match the whole name: ^ and $ anchor it. The driver needs its role in each of them; where it may list Pods in all namespaces, its sweep finds leftovers there too."`
	ServiceAccountOverwriteAllowed  string `toml:"service_account_overwrite_allowed" example:"^ci-" doc:"As namespace_overwrite_allowed, for service accounts and KUBERNETES_SERVICE_ACCOUNT_OVERWRITE."`
	PodLabelsOverwriteAllowed       string `toml:"pod_labels_overwrite_allowed" example:"^team=" doc:"Regular expression for the labels, written NAME=VALUE, that a job may set with variables whose names begin with KUBERNETES_POD_LABELS_. Labels of the runner and of the driver cannot be set." parity:"A job that tries to set a label of the runner or the driver is told so."`
	PodAnnotationsOverwriteAllowed  string `toml:"pod_annotations_overwrite_allowed" example:"^contact=" doc:"As pod_labels_overwrite_allowed, for annotations and KUBERNETES_POD_ANNOTATIONS_." parity:"Annotations of the runner and the driver cannot be set by a job."`
	NodeSelectorOverwriteAllowed    string `toml:"node_selector_overwrite_allowed" example:"^kubernetes.io/arch=" doc:"As pod_labels_overwrite_allowed, for labels that a node must have and KUBERNETES_NODE_SELECTOR_."`
	NodeTolerationsOverwriteAllowed string `toml:"node_tolerations_overwrite_allowed" example:"^pool=" doc:"As pod_labels_overwrite_allowed, for taints that the Pod bears, written KEY[=VALUE]:EFFECT, and KUBERNETES_NODE_TOLERATIONS_."`
}

// ResourceOverwrites are the most that a job may set resources to.
type ResourceOverwrites struct {
	CPURequestOverwriteMaxAllowed              string `toml:"cpu_request_overwrite_max_allowed" example:"4" doc:"The most that a job may set cpu_request to, by its variable KUBERNETES_CPU_REQUEST. Without it the variable has no effect."`
	CPULimitOverwriteMaxAllowed                string `toml:"cpu_limit_overwrite_max_allowed" example:"4" doc:"The most that a job may set cpu_limit to, by its variable KUBERNETES_CPU_LIMIT. Without it the variable has no effect."`
	MemoryRequestOverwriteMaxAllowed           string `toml:"memory_request_overwrite_max_allowed" example:"8Gi" doc:"The most that a job may set memory_request to, by its variable KUBERNETES_MEMORY_REQUEST. Without it the variable has no effect."`
	MemoryLimitOverwriteMaxAllowed             string `toml:"memory_limit_overwrite_max_allowed" example:"8Gi" doc:"The most that a job may set memory_limit to, by its variable KUBERNETES_MEMORY_LIMIT. Without it the variable has no effect."`
	EphemeralStorageRequestOverwriteMaxAllowed string `toml:"ephemeral_storage_request_overwrite_max_allowed" example:"20Gi" doc:"The most that a job may set ephemeral_storage_request to, by its variable KUBERNETES_EPHEMERAL_STORAGE_REQUEST. Without it the variable has no effect."`
	EphemeralStorageLimitOverwriteMaxAllowed   string `toml:"ephemeral_storage_limit_overwrite_max_allowed" example:"20Gi" doc:"The most that a job may set ephemeral_storage_limit to, by its variable KUBERNETES_EPHEMERAL_STORAGE_LIMIT. Without it the variable has no effect."`

	HelperCPURequestOverwriteMaxAllowed              string `toml:"helper_cpu_request_overwrite_max_allowed" example:"4" doc:"The most that a job may set helper_cpu_request to, by its variable KUBERNETES_HELPER_CPU_REQUEST. Without it the variable has no effect."`
	HelperCPULimitOverwriteMaxAllowed                string `toml:"helper_cpu_limit_overwrite_max_allowed" example:"4" doc:"The most that a job may set helper_cpu_limit to, by its variable KUBERNETES_HELPER_CPU_LIMIT. Without it the variable has no effect."`
	HelperMemoryRequestOverwriteMaxAllowed           string `toml:"helper_memory_request_overwrite_max_allowed" example:"8Gi" doc:"The most that a job may set helper_memory_request to, by its variable KUBERNETES_HELPER_MEMORY_REQUEST. Without it the variable has no effect."`
	HelperMemoryLimitOverwriteMaxAllowed             string `toml:"helper_memory_limit_overwrite_max_allowed" example:"8Gi" doc:"The most that a job may set helper_memory_limit to, by its variable KUBERNETES_HELPER_MEMORY_LIMIT. Without it the variable has no effect."`
	HelperEphemeralStorageRequestOverwriteMaxAllowed string `toml:"helper_ephemeral_storage_request_overwrite_max_allowed" example:"20Gi" doc:"The most that a job may set helper_ephemeral_storage_request to, by its variable KUBERNETES_HELPER_EPHEMERAL_STORAGE_REQUEST. Without it the variable has no effect."`
	HelperEphemeralStorageLimitOverwriteMaxAllowed   string `toml:"helper_ephemeral_storage_limit_overwrite_max_allowed" example:"20Gi" doc:"The most that a job may set helper_ephemeral_storage_limit to, by its variable KUBERNETES_HELPER_EPHEMERAL_STORAGE_LIMIT. Without it the variable has no effect."`

	PodCPURequestOverwriteMaxAllowed    string `toml:"pod_cpu_request_overwrite_max_allowed" example:"8" doc:"The most that a job may set pod_cpu_request to, by its variable KUBERNETES_POD_CPU_REQUEST. Without it the variable has no effect."`
	PodCPULimitOverwriteMaxAllowed      string `toml:"pod_cpu_limit_overwrite_max_allowed" example:"8" doc:"The most that a job may set pod_cpu_limit to, by its variable KUBERNETES_POD_CPU_LIMIT. Without it the variable has no effect."`
	PodMemoryRequestOverwriteMaxAllowed string `toml:"pod_memory_request_overwrite_max_allowed" example:"16Gi" doc:"The most that a job may set pod_memory_request to, by its variable KUBERNETES_POD_MEMORY_REQUEST. Without it the variable has no effect."`
	PodMemoryLimitOverwriteMaxAllowed   string `toml:"pod_memory_limit_overwrite_max_allowed" example:"16Gi" doc:"The most that a job may set pod_memory_limit to, by its variable KUBERNETES_POD_MEMORY_LIMIT. Without it the variable has no effect."`
}

func (o Overwrites) check() []error {
	var all []error
	eachText(o, func(key, text string) {
		if _, err := regexp.Compile(text); err != nil {
			all = append(all, fmt.Errorf("kubernetes.%s is %q: %w", key, text, err))
		}
	})
	return all
}

func (o ResourceOverwrites) check() []error {
	var all []error
	eachText(o, func(key, text string) {
		_, err := quantity("kubernetes."+key, text)
		all = append(all, err)
	})
	return all
}

// eachText goes through the keys of a struct of strings.
func eachText(of any, see func(key, text string)) {
	value := reflect.ValueOf(of)
	for i := range value.NumField() {
		see(value.Type().Field(i).Tag.Get("toml"), value.Field(i).String())
	}
}
