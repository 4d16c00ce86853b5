package settings

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Kubernetes is what the Pod of a job is made of. Its parts stand in one table
// of the file.
type Kubernetes struct {
	Namespace       string            `toml:"namespace" default:"default" doc:"Namespace of the job Pods."`
	NamespacePerJob bool              `toml:"namespace_per_job" default:"false" doc:"Whether each job gets a namespace of its own, ci-job-ID-KEY, which is made in prepare and deleted in cleanup. namespace then has no meaning, image_pull_secrets and the Secrets and ConfigMaps of volumes are not found there, and [warm] cannot be used. Needs the rights in examples/rbac-namespace-per-job.yaml."`
	ServiceAccount  string            `toml:"service_account" example:"ci-jobs" doc:"Service account of the Pods. Its token is mounted only with automount_service_account_token."`
	PodLabels       map[string]string `toml:"pod_labels" example:"team=platform" doc:"Further labels of the Pods. Variables of the job are expanded in the values, and characters that labels cannot hold become _."`
	PodAnnotations  map[string]string `toml:"pod_annotations" example:"contact=platform@example.com" doc:"Further annotations of the Pods. Variables of the job are expanded in the values."`

	Images
	Scheduling
	Resources
	PodResources
	Security
	Network
	Lifecycle
	Storage
	Patches
	ServiceContainers
	Overwrites
	ResourceOverwrites
}

func (k Kubernetes) check() error {
	var all []error
	if problems := validation.IsDNS1123Label(k.Namespace); len(problems) > 0 {
		all = append(all, fmt.Errorf("kubernetes.namespace is %q: %s", k.Namespace, strings.Join(problems, "; ")))
	}
	all = append(all, checkNames("kubernetes.pod_labels", k.PodLabels)...)
	all = append(all, checkNames("kubernetes.pod_annotations", k.PodAnnotations)...)
	all = append(all, k.Images.check()...)
	all = append(all, k.Scheduling.check()...)
	all = append(all, k.Resources.check()...)
	all = append(all, k.PodResources.check()...)
	all = append(all, k.Security.check()...)
	all = append(all, k.Network.check()...)
	all = append(all, k.Lifecycle.check()...)
	all = append(all, k.Storage.check()...)
	all = append(all, k.Patches.check()...)
	all = append(all, k.ServiceContainers.check()...)
	all = append(all, k.Overwrites.check()...)
	all = append(all, k.ResourceOverwrites.check()...)
	return errors.Join(all...)
}

// checkNames looks at the names of labels or annotations whose values depend on
// the job.
func checkNames(key string, table map[string]string) []error {
	var all []error
	for name := range table {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			all = append(all, fmt.Errorf("%s has the name %q: %s", key, name, strings.Join(problems, "; ")))
		}
	}
	return all
}
