package failure

// Cause names one kind of failure. The name is stable: documentation and
// metrics refer to it.
type Cause string

// Every kind of failure that a stage can end with. What each means, its class
// and its remedy stand in the table below.
const (
	ScriptFailed    Cause = "script_failed"
	OutOfMemory     Cause = "out_of_memory"
	JobInvalid      Cause = "job_invalid"
	Unsupported     Cause = "unsupported"
	Overwrite       Cause = "overwrite"
	ImageMissing    Cause = "image_missing"
	ImagePull       Cause = "image_pull"
	ImageDenied     Cause = "image_denied"
	ImageInvalid    Cause = "image_invalid"
	ImageAbsent     Cause = "image_absent"
	ImagePlatform   Cause = "image_platform"
	ImageStalled    Cause = "image_stalled"
	RegistryDown    Cause = "registry_down"
	RegistryLimit   Cause = "registry_limit"
	NotAllowed      Cause = "not_allowed"
	ImageUnusable   Cause = "image_unusable"
	HelperUnusable  Cause = "helper_unusable"
	ServiceUnusable Cause = "service_unusable"
	ServiceSilent   Cause = "service_silent"
	PodRefused      Cause = "pod_refused"
	ClusterLacks    Cause = "cluster_lacks"
	BuildsFolder    Cause = "builds_folder"
	Oversized       Cause = "oversized"
	Cancelled       Cause = "cancelled"
	Interrupted     Cause = "interrupted"
	Detached        Cause = "detached"
	NoStage         Cause = "no_stage"
	NoJob           Cause = "no_job"
	Settings        Cause = "settings"
	Contract        Cause = "contract"
	ClusterUnknown  Cause = "cluster_unknown"
	Credentials     Cause = "credentials"
	Access          Cause = "access"
	Unreachable     Cause = "unreachable"
	NoNode          Cause = "no_node"
	NodesBusy       Cause = "nodes_busy"
	NodeUnfit       Cause = "node_unfit"
	Gated           Cause = "gated"
	QuotaFull       Cause = "quota_full"
	QuotaTooSmall   Cause = "quota_too_small"
	WebhookDown     Cause = "webhook_down"
	StartTimeout    Cause = "start_timeout"
	ReachTimeout    Cause = "reach_timeout"
	PodLost         Cause = "pod_lost"
	NodeLost        Cause = "node_lost"
	ConnectionLost  Cause = "connection_lost"
	StageLost       Cause = "stage_lost"
	DiskFull        Cause = "disk_full"
	// ForeignContainer is a container that neither the job nor the driver has
	// put into the Pod.
	ForeignContainer Cause = "foreign_container"
	AgentRemoved     Cause = "agent_removed"
	Internal         Cause = "internal"
)

// Description is a row of the table of causes.
type Description struct {
	Cause Cause
	Class Class
	// Meaning is when the cause applies.
	Meaning string
	// Remedy is what the reader of the job log can do, "" for a failure that
	// explains itself.
	Remedy string
}

// Causes is the table that maps every cause to its class. Class decides the
// exit code, so this is the one place where it is decided whether the runner
// tries again. In prepare a system failure is tried three times and can cost
// three boots of a node: what would fail again is a build failure.
func Causes() []Description {
	return []Description{
		{ScriptFailed, Build, "The job's script ended with an exit code other than 0.", ""},
		{OutOfMemory, Build, "The container used more memory than its limit.",
			"Use less memory, or have the operator raise the container's limit in the [kubernetes] section of the driver's configuration."},
		{JobInvalid, Build, "The job asks for something that is not valid or not allowed.",
			"Correct the job's definition in .gitlab-ci.yml."},
		{Unsupported, Build, "The job needs something that this driver does not do.",
			"Remove it from the job, or run the job on a runner with another executor."},
		{Overwrite, Build, "A variable of the job asks for what the operator does not allow, or for what makes no sense.",
			"Correct or remove the variable in .gitlab-ci.yml or in the project's settings, or have the operator allow it in the [kubernetes] section of the driver's configuration."},
		{ImageMissing, Build, "The job names no image and the configuration has no default.",
			"Add \"image:\" to the job, or have the operator set image in the [kubernetes] section of the driver's configuration."},
		{NotAllowed, Build, "The job asks for something that the operator does not allow.",
			"Use what the message says is allowed, or have the operator extend the list in the [kubernetes] section of the driver's configuration."},
		{ImagePull, Build, "The registry does not have the image.",
			"Check the image's name and tag, and whether the cluster may pull it: some registries hide what a login may not see."},
		{ImageDenied, Build, "The registry does not let the cluster pull the image.",
			"Give the job a login in the variable DOCKER_AUTH_CONFIG, or have the operator give one: image_pull_secrets in the [kubernetes] section of the driver's configuration, or the Docker configuration of the runner's user. A login that is there is wrong, has expired, or may not pull this image."},
		{ImageInvalid, Build, "The image's name is not one.",
			"Correct \"image:\" of the job. Often a variable in it has no value."},
		{ImageAbsent, Build, "The image is not on the node, and its pull policy forbids to pull it.",
			"Let the job use another pull_policy (always or if-not-present). A node that has just been booted has no images."},
		{ImagePlatform, Build, "The image is made for another kind of machine than the node.",
			"Use an image for the node's architecture, or have the operator choose nodes of the image's (node_selector, kubernetes.io/arch)."},
		{ImageUnusable, Build, "The container of an image does not start.",
			"The image needs a shell (sh) and sleep, for the architecture of the node. With FF_KUBERNETES_HONOR_ENTRYPOINT its entrypoint has to run what it is given as arguments."},
		{HelperUnusable, Build, "The helper container cannot be readied: its image lacks what every job needs, or the node does not let it.",
			"The operator has to set helper_image to GitLab's gitlab-runner-helper image of the runner's version."},
		{ServiceUnusable, Build, "The container of a service does not start.",
			"Check the service's image, entrypoint and command in .gitlab-ci.yml."},
		{ServiceSilent, Build, "A service did not answer at its HEALTHCHECK_TCP_PORT.",
			"Check the port and what the service last said. The operator can raise wait.services if it only needs longer."},
		{PodRefused, Build, "The cluster does not accept the job's Pod as it is defined.",
			"The message is the cluster's own; a setting of the [kubernetes] section causes it."},
		{QuotaTooSmall, Build, "The job asks for more than a quota of the namespace has altogether.",
			"Ask for less, or have the operator raise the quota that the message names."},
		{NodeUnfit, Build, "No node of the cluster is what the job's Pod asks for.",
			"The message is the scheduler's. Correct the job's node selector, tolerations or requests, or have the operator give the cluster nodes that fit."},
		{ClusterLacks, Build, "The job's Pod names something that the cluster or the node does not have: a claim, a Secret or a ConfigMap for a volume, a CSI driver, a runtime, a security profile.",
			"The message names it. The operator has to provide it, in the namespace of the Pod or on the nodes, or to correct the [kubernetes] section of the driver's configuration."},
		{Oversized, Build, "The job asks for more than any node of the cluster has.",
			"Ask for less. If nodes are larger by now, the operator can say so by node_cpu, node_memory and node_ephemeral_storage in [tenant]."},
		{BuildsFolder, Build, "The user of the build container cannot write to the folder of the builds.",
			"The operator has to give the volume at builds_dir to that user, by fs_group in [kubernetes.pod_security_context] for one."},
		{Cancelled, Build, "The runner ended the stage: the job was cancelled or ran out of time.", ""},
		{Interrupted, System, "The runner ended config or prepare before it was done.", ""},
		{Detached, System, "A person ended attach; the stage goes on.", ""},
		{NoStage, Build, "A person asked for a stage, a container or a program that the job's Pod does not have.", ""},
		{NoJob, Build, "A person asked for a job or a Pod that is not there.",
			"List what is there with: tenant-executor ps"},
		{Settings, System, "The driver's configuration file is missing or wrong.",
			"The operator has to correct the configuration file."},
		{Contract, System, "The runner's environment lacks what a driver is handed.",
			"Run the stage from GitLab Runner, or by hand with --job FILE (see --help)."},
		{ClusterUnknown, System, "The tenant cluster could not be found by its Cluster object.",
			"The operator has to correct it, on the kcp side or in the [cluster] section of the driver's configuration."},
		{Credentials, System, "A certificate or key file of the driver cannot be used.",
			"The operator has to replace or correct the file. It is read again for each connection."},
		{Access, System, "The cluster refuses the driver's certificate or denies it a right.",
			"The operator has to check the certificate files and the role in examples/rbac.yaml."},
		{Unreachable, System, "The cluster does not answer.",
			"The operator has to check that the tenant cluster runs and that url names its present port."},
		{NoNode, System, "No node came for the Pod within the time allowed.",
			"The operator has to look at the gateway and its nodes: it may be paused, find no machine to rent, or count several Pods for one node. Where nodes only take longer to boot, raise wait.node."},
		{NodesBusy, System, "All nodes that there may be were busy for the time allowed.",
			"Retry the job when others have ended. The operator can raise wait.node, or how many nodes there may be (the gateway's ceiling, and ceiling in [tenant])."},
		{Gated, System, "Something kept the Pod from the scheduler for the time allowed.",
			"The operator has to look at what lifts the scheduling gate that the message names, such as a queue of jobs in the cluster, or raise wait.node."},
		{QuotaFull, System, "A quota of the namespace was used up for the time allowed.",
			"Retry the job when others in the namespace have ended. The operator can raise the quota or wait.node, or lower the runner's concurrent."},
		{WebhookDown, System, "An admission webhook of the cluster does not answer, without whose word the cluster takes nothing.",
			"The operator has to look at what answers for the webhook that the message names."},
		{StartTimeout, System, "The Pod had a node but did not start within the time allowed.",
			"The last message tells what it waited for. The operator can raise wait.start for slow registries."},
		{ImageStalled, System, "An image could not be pulled within the time allowed, for a reason that may pass.",
			"The message is the node's own. Retry the job; the operator can raise wait.registry."},
		{RegistryDown, System, "The registry of an image does not answer, or fails.",
			"Retry the job once the registry is well. The operator can raise wait.registry."},
		{RegistryLimit, System, "The registry of an image allows no more pulls for now.",
			"Retry the job later. A login (DOCKER_AUTH_CONFIG) often has a higher limit, and a copy of the image in a registry of your own has none."},
		{ReachTimeout, System, "The Pod runs but commands do not reach it.",
			"The node's connection to the cluster is down. The operator can raise wait.reach if it only needs longer."},
		{PodLost, System, "The job's Pod was deleted, evicted or ended while the job needed it.",
			"Retry the job. If it happens again, the operator has to find who removes the Pods."},
		{NodeLost, System, "The node of the job's Pod is gone or no longer answers.",
			"Retry the job. With \"retry: when: runner_system_failure\" in .gitlab-ci.yml GitLab does so by itself."},
		{ConnectionLost, System, "The stage could not be reached again, so its result is not known.",
			"Retry the job. The script may have gone on or may have ended."},
		{StageLost, System, "The program that watches over the script in the Pod was killed, and the script with it.",
			"Retry the job. A script that kills every process it can (kill -9 -1) does this to itself."},
		{DiskFull, System, "The node's disk was full, so that the script could not begin or its output could not be kept.",
			"Write less, or have the operator give the nodes more disk."},
		{ForeignContainer, System, "A container that is not the job's keeps the Pod from running: a webhook or a policy of the cluster has added it, or the operator's pod_spec.",
			"A webhook or a policy of the cluster has added the container. The operator has to find whose it is and have it repaired; the job need not change."},
		{AgentRemoved, Build, "The driver's program in the Pod is gone.",
			"Something in the job has emptied the folder /tenant-executor, through which the driver runs each script. Leave the folder alone; scripts have to keep to their builds folder and to $TMPDIR."},
		{Internal, System, "The driver met something it did not expect.",
			"Report it with this message."},
	}
}

// describe is the row of a cause. A cause without a row is treated as
// Internal.
func (c Cause) describe() Description {
	for _, d := range Causes() {
		if d.Cause == c {
			return d
		}
	}
	return Description{Cause: c, Class: System}
}
