package inherit

import (
	"errors"
	"fmt"
	"strings"
)

// State is what becomes of a key.
type State string

// What can become of a key of the runner's config.toml.
const (
	// Carried is a key that means the same here.
	Carried State = "carried"
	// Differs is a key that is carried over and means something slightly
	// different, which the note tells.
	Differs State = "carried, with a difference"
	// NotPossible is a key that a driver of the custom executor cannot offer.
	NotPossible State = "not possible"
	// Pointless is a key that has nothing to do here.
	Pointless State = "pointless here"
	// Stays is a key that the runner itself goes on reading.
	Stays State = "stays"
	// Refused is a key with a value that the driver does not take.
	Refused State = "refused"
)

// Row is what becomes of one key, and why.
type Row struct {
	Key   string `json:"key"`
	State State  `json:"state"`
	Note  string `json:"note,omitempty"`
}

// Lost says whether the operator has to do without the key.
func (r Row) Lost() bool { return r.State == NotPossible || r.State == Refused }

// Without are the keys of [runners.kubernetes] and of the tables in it that the
// driver's configuration has not, each with the reason (common/config.go:677-791 lists them all).
func Without() []Row {
	return []Row{
		{"context", NotPossible, "the driver reads no kubeconfig of the tenant cluster; take the address and the certificate out of it, for the [cluster] table"},
		{"bearer_token", NotPossible, "the driver shows a client certificate: cluster.cert_file and cluster.key_file"},
		{"bearer_token_overwrite_allowed", NotPossible, "a job cannot act on the tenant cluster as somebody else"},
		{"poll_interval", Pointless, "Pods are watched, and looked at now and then besides (run.poll)"},
		{"poll_timeout", Pointless, "the wait is divided: wait.node, wait.start and wait.reach"},
		{"retry_limit", Pointless, "requests are repeated for a minute, and a running stage is looked for as long as run.outage says"},
		{"retry_backoff_max", Pointless, "see retry_limit"},
		{"retry_limits", Pointless, "the driver knows which errors pass"},
		{"cleanup_resources_timeout", Pointless, "see cleanup.timeout"},
		{"logs_base_dir", Pointless, "output of a stage waits in a volume of the driver's own"},
		{"scripts_base_dir", Pointless, "scripts lie in a volume of the driver's own"},
		{"suspend_pvc_size", NotPossible, "the custom executor cannot suspend jobs"},
		{"suspend_pvc_storage_class", NotPossible, "the custom executor cannot suspend jobs"},
		{"services.suspend_data_path", NotPossible, "the custom executor cannot suspend jobs"},
	}
}

// Moved are the keys of [runners.kubernetes] that have another name in the
// driver's configuration.
func Moved() map[string]Place {
	return map[string]Place{
		"host":      {"cluster", "url"},
		"ca_file":   {"cluster", "ca_file"},
		"cert_file": {"cluster", "cert_file"},
		"key_file":  {"cluster", "key_file"},
	}
}

// Place is a key of the driver's configuration.
type Place struct{ Table, Key string }

// autoscaler is the section of [runners.kubernetes] that is the [warm] table
// here.
const autoscaler = "autoscaler"

// pauseImage is the kubernetes executor's own default
// (common/config.go, KubernetesAutoscalerConfig).
const pauseImage = "registry.k8s.io/pause:3.10"

// Flags are feature flags of the runner that mean something else here, or
// nothing (helpers/featureflags/flags.go).
func Flags() []Row {
	return []Row{
		{"FF_CONCRETE", NotPossible, "the custom executor runs scripts, not step-runner"},
		{"FF_SUSPENDABLE_ENVIRONMENTS", NotPossible, "the custom executor cannot suspend jobs"},
		{"FF_USE_LEGACY_KUBERNETES_EXECUTION_STRATEGY", Pointless, "a stage runs on in the Pod when its connection is lost, and is found again"},
		{"FF_WAIT_FOR_POD_TO_BE_REACHABLE", Pointless, "prepare always waits for that"},
		{"FF_USE_POD_ACTIVE_DEADLINE_SECONDS", Pointless, "each Pod has a deadline, from the job's own time-out"},
		{"FF_PRINT_POD_EVENTS", NotPossible, "the job log has the cluster's warnings alone (print_pod_warning_events); tenant-executor events JOB shows all events"},
		{"FF_USE_DUMB_INIT_WITH_KUBERNETES_EXECUTOR", Pointless, "the program that starts a stage collects its processes"},
	}
}

// jobKeys are the keys of a [[runners]] entry that the driver answers for the
// runner, since config_exec has the last word on them.
func jobKeys() []string { return []string{"builds_dir", "cache_dir", "shell"} }

// EntryKeys are the keys of a [[runners]] entry that the runner does not heed
// for the custom executor.
func EntryKeys() []Row {
	return []Row{
		{"proxy_exec", NotPossible, "the runner does not use it with the custom executor"},
		{"step_runner_image", NotPossible, "steps of jobs (run:) need step-runner in the job's image"},
		{"referees", NotPossible, "the runner has them for its own executors only"},
	}
}

// Refusals is the error of keys whose values the driver does not take, nil
// where there are none. To pass over a key that it knows could mean to run jobs
// with more rights than the operator wrote. The way to the cluster and the
// placeholders have tables of their own, where they may be set otherwise.
func Refusals(rows []Row) error {
	var all []error
	for _, row := range rows {
		_, moved := Moved()[row.Key]
		if row.State == Refused && !moved && !strings.HasPrefix(row.Key, autoscaler+".") {
			all = append(all, fmt.Errorf("%s: %s", row.Key, row.Note))
		}
	}
	return errors.Join(all...)
}
