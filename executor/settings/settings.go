// Package settings is the driver's configuration file: strict, so that a
// mistyped key is an error and not a surprise, and with every key's meaning
// beside it.
package settings

import "time"

// DefaultPath is where the file is looked for when nobody names another.
const DefaultPath = "/etc/tenant-executor/config.toml"

// Settings is the whole file. The tags are the source of examples/config.toml:
// "doc" is the meaning, "default" the value of a key left out, "example" what
// the example file shows for a key without default.
type Settings struct {
	Cluster    Cluster    `toml:"cluster" doc:"Where the tenant cluster is and who the driver is there."`
	Kubernetes Kubernetes `toml:"kubernetes" doc:"The Pod of a job. Keys have the names and meanings of [runners.kubernetes] in the runner's config.toml."`
	Job        Job        `toml:"job" doc:"What config tells the runner about every job."`
	Wait       Wait       `toml:"wait" doc:"How long prepare waits, phase by phase. Times are written as 90s, 10m, 1h30m."`
	Run        Run        `toml:"run" doc:"How a stage is watched and ended."`
	Cleanup    Cleanup    `toml:"cleanup" doc:"How cleanup ends. It has to fit in the runner's shutdown_timeout (30 s by default)."`
}

// Cluster is how to reach the cluster.
type Cluster struct {
	URL      string `toml:"url" example:"https://127.0.0.1:36443" doc:"Address of the tenant cluster's apiserver: https, on the loopback interface of this host, without a path. It stands in .status.url of the Cluster object."`
	CAFile   string `toml:"ca_file" example:"/etc/tenant-executor/ca.crt" doc:"File with the certificate of the cluster's CA (PEM)."`
	CertFile string `toml:"cert_file" example:"/etc/tenant-executor/client.crt" doc:"File with the driver's client certificate (PEM), signed by that CA."`
	KeyFile  string `toml:"key_file" example:"/etc/tenant-executor/client.key" doc:"File with the key of the client certificate (PEM), readable by the runner's user alone."`

	Transport string `toml:"transport" default:"spdy" doc:"Protocol of the connections to running stages: spdy or websocket. Both lose nothing; websocket needs the verb get on pods/exec, and create too from Kubernetes 1.35 on."`
}

// Kubernetes is what the Pod of a job is made of.
type Kubernetes struct {
	Namespace        string            `toml:"namespace" default:"default" doc:"Namespace of the job Pods."`
	Image            string            `toml:"image" example:"debian:12" doc:"Image of jobs that name none. Without it such jobs fail."`
	HelperImage      string            `toml:"helper_image" example:"registry.example.com/gitlab-org/gitlab-runner-helper:x86_64-v19.4.0" doc:"Image with git and gitlab-runner-helper, of the runner's version. Required."`
	PullPolicy       string            `toml:"pull_policy" example:"if-not-present" doc:"always, if-not-present or never, for every image of the Pod. Without it the cluster decides."`
	ImagePullSecrets []string          `toml:"image_pull_secrets" example:"registry-login" doc:"Names of Secrets in the namespace with registry logins."`
	ServiceAccount   string            `toml:"service_account" example:"ci-jobs" doc:"Service account of the Pods. Its token is not mounted."`
	NodeSelector     map[string]string `toml:"node_selector" example:"kubernetes.io/arch=amd64" doc:"Labels that a node must have."`
	PodLabels        map[string]string `toml:"pod_labels" example:"team=platform" doc:"Further labels of the Pods."`
	PodAnnotations   map[string]string `toml:"pod_annotations" example:"contact=platform@example.com" doc:"Further annotations of the Pods."`

	CPURequest              string `toml:"cpu_request" example:"500m" doc:"CPU that the build container is sure of."`
	CPULimit                string `toml:"cpu_limit" example:"2" doc:"CPU that the build container gets at most."`
	MemoryRequest           string `toml:"memory_request" example:"1Gi" doc:"Memory that the build container is sure of."`
	MemoryLimit             string `toml:"memory_limit" example:"2Gi" doc:"Memory at which the build container is ended."`
	EphemeralStorageRequest string `toml:"ephemeral_storage_request" example:"2Gi" doc:"Disk space that the build container is sure of."`
	EphemeralStorageLimit   string `toml:"ephemeral_storage_limit" example:"10Gi" doc:"Disk space at which the Pod is evicted."`

	HelperCPURequest              string `toml:"helper_cpu_request" example:"100m" doc:"As cpu_request, for the helper container."`
	HelperCPULimit                string `toml:"helper_cpu_limit" example:"1" doc:"As cpu_limit, for the helper container."`
	HelperMemoryRequest           string `toml:"helper_memory_request" example:"128Mi" doc:"As memory_request, for the helper container."`
	HelperMemoryLimit             string `toml:"helper_memory_limit" example:"512Mi" doc:"As memory_limit, for the helper container."`
	HelperEphemeralStorageRequest string `toml:"helper_ephemeral_storage_request" example:"1Gi" doc:"As ephemeral_storage_request, for the helper container."`
	HelperEphemeralStorageLimit   string `toml:"helper_ephemeral_storage_limit" example:"10Gi" doc:"As ephemeral_storage_limit, for the helper container."`
}

// Job is what config answers for every job.
type Job struct {
	BuildsDir string `toml:"builds_dir" default:"/builds" doc:"Folder in the Pod for the job's repository, on a volume that build and helper share."`
	CacheDir  string `toml:"cache_dir" default:"/cache" doc:"Folder in the Pod for caches. It goes with the Pod: caches that last need [runners.cache] in the runner's config.toml."`
	Shell     string `toml:"shell" default:"bash" doc:"Kind of scripts that the runner writes: bash or sh. Either runs under bash where the image has it, else under sh."`
}

// Wait holds the budget of each phase of prepare.
type Wait struct {
	Node  Duration `toml:"node" default:"15m" doc:"Until a node takes the Pod: the boot of a node, and the queue when all are busy."`
	Start Duration `toml:"start" default:"15m" doc:"From then until the containers run: mostly the pull of the images."`
	Reach Duration `toml:"reach" default:"2m" doc:"From then until a command runs in the Pod: the node's connection to the cluster."`
}

// Run is how a stage is watched and ended.
type Run struct {
	CancelGrace Duration `toml:"cancel_grace" default:"10s" doc:"How long the processes of a cancelled stage have between TERM and KILL. Less than graceful_kill_timeout of [runners.custom]."`
	NodeLost    Duration `toml:"node_lost" default:"10s" doc:"How long a node may be NotReady before the stage ends as a system failure."`
	Poll        Duration `toml:"poll" default:"5s" doc:"How often a running stage looks at its Pod and its node."`
	Outage      Duration `toml:"outage" default:"10m" doc:"How long it is tried to reach a running stage again when the connection to it is lost. The script goes on meanwhile."`
	Silence     Duration `toml:"silence" default:"30s" doc:"How long a connection may be without a sign of life before it counts as lost."`
	SpoolLimit  string   `toml:"spool_limit" default:"1Gi" doc:"How much output of a stage may wait in the Pod for the driver. At the limit the script waits."`
}

// Cleanup is how cleanup ends.
type Cleanup struct {
	Timeout Duration `toml:"timeout" default:"20s" doc:"How long cleanup tries to reach the cluster."`
}

// Duration is a time as the file writes it: "90s", "10m". Parse has checked
// every Duration of the Settings that it gives.
type Duration string

// Value is the time; 0 for what is not one.
func (d Duration) Value() time.Duration {
	value, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return value
}
