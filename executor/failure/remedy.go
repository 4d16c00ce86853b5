package failure

import (
	"regexp"
	"slices"
	"strings"
)

// Sign is something that was seen of a failure, beside its message, that decides
// what can be done about it.
type Sign string

// What may be seen of a failure.
const (
	// ByHand: a person ran the verb and reads the error, no job log.
	ByHand Sign = "by_hand"
	// MayRaise: the job may raise the limit itself, by the variable that is the
	// subject.
	MayRaise Sign = "may_raise"
	// NotPrepared: the job has no Pod, and none was seen before.
	NotPrepared Sign = "not_prepared"
	// ServiceEnded: a service that is waited for has ended.
	ServiceEnded Sign = "service_ended"
	// Discovered: the cluster's address comes from its Cluster object.
	Discovered Sign = "discovered"
	// ByPodSpec: a container stands in the operator's pod_spec.
	ByPodSpec Sign = "by_pod_spec"
)

// Evidence is all that a remedy is made of, beside the cause.
type Evidence struct {
	// Text is the whole message, with the cluster's own words.
	Text string
	// Signs are what else was seen.
	Signs []Sign
	// Subject is what the remedy speaks of, such as the name of a variable.
	Subject string
}

// Remedy is what a reader can do about failures of which something is known
// beside the cause.
type Remedy struct {
	Causes []Cause
	// When says, for the reference, what has to have been seen.
	When string
	// Text is for the reader of the job log, or of the terminal. "%s" stands for
	// the subject.
	Text string

	// sign and words are what has to have been seen: the sign, and the words in
	// the message. What is empty is not asked for.
	sign  Sign
	words string
}

// fits reports whether what was seen is what the remedy is for.
func (r Remedy) fits(cause Cause, e Evidence) bool {
	return slices.Contains(r.Causes, cause) &&
		(r.sign == "" || slices.Contains(e.Signs, r.sign)) &&
		(r.words == "" || regexp.MustCompile("(?is)"+r.words).MatchString(e.Text))
}

// RemedyFor is what can be done about a failure, made of what was seen of it: the
// first remedy that fits, or else that of the cause. It is "" where the failure
// explains itself.
func RemedyFor(cause Cause, e Evidence) string {
	for _, r := range Remedies() {
		if r.fits(cause, e) {
			return strings.ReplaceAll(r.Text, "%s", e.Subject)
		}
	}
	return cause.describe().Remedy
}

// causes are those that a remedy is for.
func causes(all ...Cause) []Cause { return all }

// Remedies is the table of the remedies that depend on more than the cause. Of
// those that fit the first counts.
func Remedies() []Remedy {
	return slices.Concat(clusterRemedies(), waitRemedies(), lossRemedies(), imageRemedies(), personRemedies())
}

// clusterRemedies are about what the cluster refuses.
func clusterRemedies() []Remedy {
	return []Remedy{
		{Causes: causes(PodRefused), When: "a webhook refuses the Pod", words: `admission webhook "[^"]*" denied`,
			Text: "A webhook of the cluster refuses the Pod, and the message is its own. The operator has to satisfy it by the [kubernetes] section, or to ask its owner."},
		{Causes: causes(PodRefused, Unreachable, Internal), When: "a webhook of the cluster does not answer", words: `failed calling webhook|failed to call webhook`,
			Text: "The cluster asks the webhook that the message names about every Pod, and does not get an answer from it. The operator has to repair or remove the webhook."},
		{Causes: causes(PodRefused), When: "a policy refuses the Pod", words: `ValidatingAdmissionPolicy`,
			Text: "A policy of the cluster refuses the Pod; the message names it. The operator has to satisfy it by the [kubernetes] section, or to correct the policy."},
		{Causes: causes(PodRefused), When: "a Pod Security standard refuses the Pod", words: `violates PodSecurity`,
			Text: "The namespace enforces a Pod Security standard. The operator has to set what the message names in the [kubernetes] section, or to choose another standard for the namespace."},
		{Causes: causes(PodRefused), When: "a LimitRange refuses the Pod", words: `(maximum|minimum) \S+ usage per |limit to request ratio per |no (limit|request) is specified`,
			Text: "A LimitRange of the namespace bounds what a container or a Pod may ask for (kubectl describe limitrange). Ask for what it allows, by the KUBERNETES_* variables where the operator allows them, or have the operator change the requests and limits in [kubernetes] or the LimitRange."},
		{Causes: causes(PodRefused), When: "a quota of the namespace wants more to be said", words: `failed quota`,
			Text: "A ResourceQuota of the namespace, which the message names, wants requests or limits that the containers do not have. The operator has to set them in the [kubernetes] section."},
		{Causes: causes(PodRefused), When: "the service account is not there", words: `service ?account \S+.*(not found|is forbidden)|error looking up service account`,
			Text: "The operator has to create the service account in the namespace of the Pod, or to correct service_account in the [kubernetes] section."},
		{Causes: causes(PodRefused), When: "the Pod is too large for the cluster", words: `request is too large|request entity too large`,
			Text: "The cluster takes no Pod of this size. Put long commands and variables into files of the repository or of an image."},
		{Causes: causes(PodRefused), When: "the cluster does not find the Pod valid", words: `is invalid: `,
			Text: "The message names the field of the Pod that is wrong. The operator has to correct the setting of the [kubernetes] section, or of pod_spec, that it comes from."},
		{Causes: causes(Unreachable), When: "the cluster was found by its Cluster object", sign: Discovered,
			Text: "The operator has to check that the tenant cluster runs, and that .status.url of its Cluster object is where it listens now."},
		{Causes: causes(ForeignContainer), When: "the container comes from pod_spec", sign: ByPodSpec,
			Text: "The container comes from the operator's pod_spec, and the Pod cannot run without it. The operator has to repair it there; the job need not change."},
	}
}

// waitRemedies are about a Pod that does not get a node or does not start.
func waitRemedies() []Remedy {
	return []Remedy{
		{Causes: causes(NodeUnfit), When: "the cluster is short of what the Pod asks for", words: `insufficient \S+`,
			Text: "No node has as much free as the message says is lacking. Ask for less, or have the operator allow larger nodes or raise wait.node."},
		{Causes: causes(ImageStalled), When: "it is the sandbox image of the node", words: `sandbox image`,
			Text: "The sandbox image (pause) is the nodes' own: the operator has to see to it that they have it or can pull it. The operator can raise wait.registry; the job's images are not at fault."},
		{Causes: causes(StartTimeout), When: "the sandbox of the Pod cannot be made", words: `FailedCreatePodSandBox`,
			Text: "The node cannot make the Pod's sandbox: its network plugin or its sandbox image (pause) is not there. The operator has to see to the nodes; the job's image is not at fault."},
		{Causes: causes(StartTimeout), When: "a volume cannot be mounted", words: `FailedMount|FailedAttachVolume|FailedMapVolume`,
			Text: "A volume of the Pod cannot be mounted for the reason in the message. The operator has to correct it, or the volumes in the [kubernetes] section."},
		{Causes: causes(ServiceSilent), When: "the service has ended", sign: ServiceEnded,
			Text: "The service has to stay up for the job to use it. Check its image, command and variables in .gitlab-ci.yml by what it said last."},
	}
}

// lossRemedies are about a Pod that ran, or that its node did not take.
func lossRemedies() []Remedy {
	return []Remedy{
		{Causes: causes(PodLost), When: "the job has no Pod yet, and a person asks", sign: NotPrepared,
			Text: "Run prepare first, with the same --config and --job: each stage works in the Pod that it makes."},
		{Causes: causes(PodLost), When: "the job used more disk than it may", words: `ephemeral local storage usage exceeds|exceeds? .*local ephemeral storage|usage of EmptyDir volume .* exceeds`,
			Text: "The job wrote more to its disk than its limit. Write less, or raise the limit: ephemeral_storage_limit in the [kubernetes] section and, where the operator allows it, KUBERNETES_EPHEMERAL_STORAGE_LIMIT."},
		{Causes: causes(PodLost), When: "the node ran out of something", words: `the node was low on resource|the node had condition: \[`,
			Text: "The node ran short of what the message names, and ended the Pod. Retry the job, with requests as large as what it uses; the operator may have to give the nodes more."},
		{Causes: causes(PodLost), When: "the node's topology manager does not take the Pod", words: `TopologyAffinityError`,
			Text: "The node took the Pod and then could not give it its CPUs from one NUMA node, as the kubelet's topology manager there demands. Ask for fewer whole CPUs, or have the operator change the nodes' topology policy."},
		{Causes: causes(PodLost), When: "the node has no room for the Pod after all", words: `OutOf(cpu|memory|pods|ephemeral-storage)|UnexpectedAdmissionError`,
			Text: "The node took the Pod and then had no room for it, since something else was there first. Retry the job. If it happens again, the operator has to look for Pods beside the jobs on its nodes."},
		{Causes: causes(PodLost), When: "another Pod took the place", words: `preempt`,
			Text: "A Pod of higher priority took the place. Retry the job, or have the operator give jobs a priority class (priority_class_name)."},
		{Causes: causes(PodLost), When: "the node was shut down", words: `NodeShutdown|node shutdown|imminent node shutdown`,
			Text: "The node was shut down under the job. Retry the job. If it happens again, the operator has to find what ends the nodes."},
		{Causes: causes(PodLost), When: "the Pod's time is over", words: `DeadlineExceeded|active on the node longer than`,
			Text: "The Pod reached its deadline (activeDeadlineSeconds). If the job's time-out in GitLab is longer, the operator has to correct pod_spec."},
		{Causes: causes(OutOfMemory), When: "the job may raise the limit", sign: MayRaise,
			Text: "Use less memory, or set the variable %s of the job to a higher limit."},
	}
}

// imageRemedies are about images and about what the node makes of them.
func imageRemedies() []Remedy {
	return []Remedy{
		{Causes: causes(HelperUnusable), When: "the node lets no program run from the Pod's volume", words: `podagent.*(permission denied|cannot execute|operation not permitted)`,
			Text: "The node does not let programs run from an emptyDir volume: its kubelet's folder (/var/lib/kubelet) is mounted noexec, or a security module forbids it. The operator has to correct the nodes; no image is at fault."},
		{Causes: causes(HelperUnusable, BuildsFolder), When: "the node's disk is full", words: `no space left on device|disk quota exceeded`,
			Text: "The node's disk is full, or the Pod's limit for it is too small for the driver's own program. The operator has to give the nodes more disk or raise the limit."},
		{Causes: causes(HelperUnusable), When: "the helper's image cannot be pulled", words: `the registry does not |this is not the name of an image|the pull policy is never`,
			Text: "The operator has to correct helper_image in the [kubernetes] section, or to let the cluster pull it; the job's image is not at fault."},
		{Causes: causes(RegistryDown), When: "the registry's name is not resolved", words: `lookup [^ ]+|no such host|server misbehaving`,
			Text: "The node could not resolve the registry's name. Check the name in the image; if it is right, the operator has to see to the DNS that the nodes use."},
		{Causes: causes(RegistryDown), When: "the registry's certificate is not trusted", words: `x509: |certificate signed by unknown authority|server gave HTTP response to HTTPS client`,
			Text: "The node does not trust the registry. The operator has to give the nodes its certificate authority, or have them take it as it is; another try changes nothing."},
	}
}

// personRemedies are for a person at a terminal, who needs other words than the
// reader of a job log.
func personRemedies() []Remedy {
	return []Remedy{
		{Causes: causes(Settings), When: "the configuration file is not there, and a person asks", sign: ByHand, words: `TENANT_EXECUTOR_CONFIG.*no such file`,
			Text: "Name the file with --config FILE. \"tenant-executor migrate\" writes one from the runner's configuration."},
		{Causes: causes(Settings), When: "a file cannot be written, and a person asks", sign: ByHand, words: `\(--html\)`,
			Text: "Name a file that you may write."},
		{Causes: causes(Settings), When: "the configuration is wrong, and a person asks", sign: ByHand, words: `permission denied`,
			Text: "Run it as the runner's user, or let your own user read the file."},
		{Causes: causes(Contract), When: "the script is not there, and a person asks", sign: ByHand, words: `the script of stage`,
			Text: "Name a script file that is there: tenant-executor run --job FILE SCRIPT STAGE."},
		{Causes: causes(Contract), When: "the job file cannot be used, and a person asks", sign: ByHand, words: `the job in `,
			Text: "Name a job file that is there with --job. {\"id\": 1} is enough for one."},
	}
}
