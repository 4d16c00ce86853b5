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
	Tenant     Tenant     `toml:"tenant" doc:"What the gateway of the tenant cluster does about nodes. The driver cannot ask it, and explains waits by this."`
	Kubernetes Kubernetes `toml:"kubernetes" doc:"The Pod of a job. Keys have the names and meanings of [runners.kubernetes] in the runner's config.toml."`
	Job        Job        `toml:"job" doc:"What config tells the runner about every job."`
	Wait       Wait       `toml:"wait" doc:"How long prepare waits, phase by phase. Times are written as 90s, 10m, 1h30m."`
	Run        Run        `toml:"run" doc:"How a stage is watched and ended."`
	Cleanup    Cleanup    `toml:"cleanup" doc:"How cleanup ends. It has to fit in the runner's shutdown_timeout (30 s by default)."`
	State      State      `toml:"state" doc:"What the driver keeps on this host."`
	Inherit    Inherit    `toml:"inherit" doc:"Settings that stand in the runner's own config.toml already. tenant-executor migrate shows which of them are carried over."`
	Metrics    Metrics    `toml:"metrics" doc:"Figures of jobs for Prometheus. Without this table none are counted. The command stats needs none of it."`
	Log        Log        `toml:"log" doc:"What the driver says to this host, beside the job log: a line for each step of a job, with its id."`
	Warm       Warm       `toml:"warm" doc:"Nodes that are kept for jobs to come, by placeholder Pods. Without this table none are. Placeholders make way for jobs of the same namespace alone: use one namespace for all jobs of a cluster that has them. Keys have the names and meanings of [runners.kubernetes.autoscaler] in the runner's config.toml, where that has them."`
	Debug      Debug      `toml:"debug" doc:"A look into failed jobs."`
}

// Cluster is how to reach the cluster. Exactly one of URL, DiscoverCluster and
// InCluster is set.
type Cluster struct {
	URL                string `toml:"url" example:"https://127.0.0.1:36443" doc:"Address of the tenant cluster's apiserver: https, on the loopback interface of this host, without a path. It stands in .status.url of the Cluster object. One of url, discover_cluster and in_cluster has to be set."`
	DiscoverCluster    string `toml:"discover_cluster" example:"my-cluster" doc:"Instead of url: name of the Cluster object on the kcp side. Its .status.url is read at the start of each job, and again when nobody answers there."`
	DiscoverKubeconfig string `toml:"discover_kubeconfig" example:"/etc/tenant-executor/kcp.kubeconfig" doc:"With discover_cluster: kubeconfig of the workspace that the Cluster object is in. Its user needs the right to get the object."`
	DiscoverContext    string `toml:"discover_context" example:"my-workspace" doc:"With discover_cluster: context of that kubeconfig, if not the current one."`
	DiscoverResource   string `toml:"discover_resource" example:"clusters.example.com" doc:"With discover_cluster: resource and API group of the Cluster object. Needed only where several groups serve clusters."`
	InCluster          bool   `toml:"in_cluster" example:"true" doc:"Instead of url: the driver runs in a Pod of the tenant cluster itself and takes the Pod's address of the cluster and its service account. See examples/in-cluster-runner.yaml for what it costs."`
	CAFile             string `toml:"ca_file" example:"/etc/tenant-executor/ca.crt" doc:"File with the certificate of the cluster's CA (PEM). The three files are needed unless in_cluster is set."`
	CertFile           string `toml:"cert_file" example:"/etc/tenant-executor/client.crt" doc:"File with the driver's client certificate (PEM). It is read again for each connection, so it may be replaced at any time."`
	KeyFile            string `toml:"key_file" example:"/etc/tenant-executor/client.key" doc:"File with the key of the client certificate (PEM), which nobody but its owner may read (mode 0600)."`
	Transport          string `toml:"transport" default:"spdy" doc:"Protocol of the connections to running stages: spdy or websocket. Both lose nothing; websocket needs the verb get on pods/exec, and create too from Kubernetes 1.35 on."`
}

// Tenant is what the gateway does about nodes.
type Tenant struct {
	Ceiling     int `toml:"ceiling" default:"10" doc:"How many nodes the gateway boots at most. The runner's concurrent is best the same."`
	PodsPerNode int `toml:"pods_per_node" example:"1" doc:"How many Pods the gateway counts for one node (SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE). It has to be 1 there, since job Pods do not share nodes; with another number here the driver says so as soon as a job waits in vain."`

	Hold Duration `toml:"hold" default:"2m" doc:"How long the gateway keeps its nodes when nothing has run. The page of statistics counts the nodes' time by it, and doctor compares it with the runner's check_interval."`

	NodeCPU              string `toml:"node_cpu" example:"4" doc:"CPU that Pods can have of the largest node. A job that asks for more fails at once. Without it, what the nodes of the last 24 hours had counts."`
	NodeMemory           string `toml:"node_memory" example:"8Gi" doc:"As node_cpu, for memory."`
	NodeEphemeralStorage string `toml:"node_ephemeral_storage" example:"40Gi" doc:"As node_cpu, for disk space."`
}

// Job is what config answers for every job.
type Job struct {
	BuildsDir string `toml:"builds_dir" default:"/builds" doc:"Folder in the Pod for the job's repository, on a volume that build and helper share."`
	CacheDir  string `toml:"cache_dir" default:"/cache" doc:"Folder in the Pod for caches. It goes with the Pod: caches that last need [runners.cache] in the runner's config.toml."`
	Shell     string `toml:"shell" default:"bash" doc:"Kind of scripts that the runner writes: bash or sh. Either runs under bash where the image has it, else under sh."`
}

// Wait holds the budget of each phase of prepare.
type Wait struct {
	Node     Duration `toml:"node" default:"15m" doc:"Until a node takes the Pod: the boot of a node, and the queue when all are busy."`
	Start    Duration `toml:"start" default:"15m" doc:"From then until the containers run: mostly the pull of the images."`
	Registry Duration `toml:"registry" default:"5m" doc:"How long an image is asked for again whose registry does not answer, fails, or allows no more pulls. It counts within start."`
	Reach    Duration `toml:"reach" default:"2m" doc:"From then until a command runs in the Pod: the node's connection to the cluster."`
	Services Duration `toml:"services" default:"5m" doc:"From then until every service with the variable HEALTHCHECK_TCP_PORT answers at its port. Then the job fails: it was not to begin without them."`
}

// Run is how a stage is watched and ended.
type Run struct {
	CancelGrace    Duration `toml:"cancel_grace" default:"10s" doc:"How long the processes of a cancelled stage have between TERM and KILL. Less than graceful_kill_timeout of [runners.custom]."`
	NodeLost       Duration `toml:"node_lost" default:"10s" doc:"How long a node may be NotReady before the stage ends as a system failure."`
	Poll           Duration `toml:"poll" default:"5s" doc:"How often a running stage looks at its Pod and its node."`
	Outage         Duration `toml:"outage" default:"10m" doc:"How long it is tried to reach a running stage again when the connection to it is lost, or brings nothing. The script goes on meanwhile. A request waits as long for a cluster that has answered before and is away."`
	Silence        Duration `toml:"silence" default:"30s" doc:"How long a connection may be without a sign of life before it counts as lost."`
	SeparateStderr bool     `toml:"separate_stderr" default:"false" doc:"Tell stdout and stderr of a script apart in the Pod, so that tenant-executor logs --only stderr shows the one alone. Each then comes through a pipe of its own, and the job log has them in the order in which they arrive; without it the order is exactly that in which they were written."`
	SpoolLimit     string   `toml:"spool_limit" default:"1Gi" doc:"How much output of a stage may wait in the Pod for the driver. At the limit the script waits."`
}

// Cleanup is how cleanup ends.
type Cleanup struct {
	Timeout Duration `toml:"timeout" default:"20s" doc:"How long cleanup tries to reach the cluster."`
}

// Inherit is where settings are taken from that the file does not name.
type Inherit struct {
	ConfigFile string `toml:"config_file" example:"/etc/gitlab-runner/config.toml" doc:"The runner's config.toml. Keys of [runners.kubernetes] there, and builds_dir, cache_dir and shell, count as if they were written here; what is written here wins. The runner that a stage works for is found by its token. The driver has to be able to read the file."`
}

// State is what lasts on the host.
type State struct {
	Dir string `toml:"dir" default:"/var/lib/tenant-executor" doc:"Folder for what outlives a job, such as cleanups that could not reach the cluster. The runner's user has to be able to write to it, and no other. Jobs run without it as well."`
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
