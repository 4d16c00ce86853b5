package failure_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
)

// Every remedy is here, with a message as a cluster, a registry or the driver has
// written it. What a remedy says follows what was seen: "not" are the words of the
// remedy that the same message led to while it hung on the cause alone.
func TestEveryRemedyHasItsMessage(t *testing.T) {
	t.Parallel()
	const (
		pod    = "the job's Pod: "
		denied = `pods "job-1-a" is forbidden: `
	)
	seen := func(signs ...failure.Sign) []failure.Sign { return signs }
	led := map[string]bool{}
	for _, c := range []struct {
		cause     failure.Cause
		text      string
		signs     []failure.Sign
		subject   string
		want, not string
	}{
		// What the cluster refuses.
		{cause: failure.PodRefused, text: pod + `admission webhook "images.example.com" denied the request: no tag latest`, want: "A webhook of the cluster refuses"},
		{cause: failure.Unreachable, text: `the tenant cluster at https://127.0.0.1:6443: Internal error occurred: failed calling webhook "p.example.com": failed to call webhook: Post "https://10.0.0.9:443/": dial tcp 10.0.0.9:443: connect: connection refused`,
			want: "repair or remove the webhook", not: "url names its present port"},
		{cause: failure.Internal, text: `Internal error occurred: failed calling webhook "p.example.com": failed to call webhook: x509: certificate has expired`, want: "repair or remove the webhook", not: "Report it"},
		{cause: failure.PodRefused, text: pod + denied + `ValidatingAdmissionPolicy 'tags' with binding 'tags' denied request: no latest`, want: "A policy of the cluster"},
		{cause: failure.PodRefused, text: pod + denied + `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (containers "build", "helper" must set securityContext.allowPrivilegeEscalation=false)`, want: "Pod Security standard"},
		{cause: failure.PodRefused, text: pod + denied + "maximum memory usage per Container is 1Gi, but limit is 2Gi", want: "A LimitRange of the namespace", not: "or a quota causes it"},
		{cause: failure.PodRefused, text: pod + denied + "minimum cpu usage per Pod is 1.  No request is specified", want: "A LimitRange of the namespace"},
		{cause: failure.PodRefused, text: pod + denied + "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000", want: "A LimitRange of the namespace"},
		{cause: failure.PodRefused, text: pod + denied + "failed quota: jobs: must specify limits.memory for: build,helper", want: "wants requests or limits"},
		{cause: failure.QuotaTooSmall, text: "the job never fits into namespace ci: 8Gi limits.memory are asked for, and quota jobs has 4Gi", want: "raise the quota that the message names"},
		{cause: failure.QuotaFull, text: "no room for the job in namespace ci after 15 min: quota jobs: 1 of 1 pods used", want: "when others in the namespace have ended", not: "all its nodes are busy"},
		{cause: failure.WebhookDown, text: `admission webhook "images.example.com" has not answered for 1 min: connection refused`, want: "what answers for the webhook"},
		{cause: failure.PodRefused, text: pod + denied + "error looking up service account ci/deployer: serviceaccount \"deployer\" not found", want: "create the service account"},
		{cause: failure.PodRefused, text: pod + "etcdserver: request is too large", want: "no Pod of this size"},
		{cause: failure.PodRefused, text: pod + `Pod "job-1-a" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`, want: "names the field of the Pod"},
		{cause: failure.PodRefused, text: "node n1 does not take the job's Pod: the Pod ended before it ran: SysctlForbidden: forbidden sysctl: \"kernel.msgmax\" not allowlisted", want: "The message is the cluster's own"},
		{cause: failure.Unreachable, text: "dial tcp 127.0.0.1:6443: connect: connection refused", signs: seen(failure.Discovered), want: ".status.url of its Cluster object", not: "url names its present port"},
		{cause: failure.Unreachable, text: "dial tcp 127.0.0.1:6443: connect: connection refused", want: "url names its present port"},
		{cause: failure.ForeignContainer, text: "container spy with image spy:1 is not the job's", want: "A webhook or a policy of the cluster has added"},
		{cause: failure.ForeignContainer, text: "container spy with image spy:1 is not the job's", signs: seen(failure.ByPodSpec), want: "the operator's pod_spec, and"},

		// A Pod that waits.
		{cause: failure.Gated, text: "no node for the job after 15 min: scheduling gate kueue.x-k8s.io/admission is not lifted yet", want: "lifts the scheduling gate", not: "all its nodes are busy"},
		{cause: failure.NodeUnfit, text: "no node for the job after 15 min: none of the 2 nodes fits: 2 Insufficient memory", want: "as much free as the message says"},
		{cause: failure.NodeUnfit, text: "no node for the job after 15 min: none of the 3 nodes fits: 3 node(s) didn't match Pod's node affinity/selector", want: "Correct the job's node selector", not: "all its nodes are busy"},
		{cause: failure.NodeUnfit, text: "no node for the job after 15 min: the only node does not fit: 1 node(s) had untolerated taint(s)", want: "tolerations", not: "all its nodes are busy"},
		{cause: failure.NodesBusy, text: "no node for the job after 15 min: all 2 nodes are busy (maximum 2); place 1 of 1 in the queue", want: "when others have ended"},
		{cause: failure.NoNode, text: "no node for the job after 15 min: the cluster has none, and none has come", want: "look at the gateway"},
		{cause: failure.StartTimeout, text: `FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image "registry.k8s.io/pause:3.10": 429 Too Many Requests`, want: "sandbox image (pause)", not: "wait.start"},
		{cause: failure.ImageStalled, text: "node n1 cannot pull the sandbox image of the job's Pod, for 45 s: 429 Too Many Requests", want: "the nodes' own", not: "Retry the job"},
		{cause: failure.StartTimeout, text: `FailedMount: MountVolume.SetUp failed for volume "cache": mount failed: exit status 32`, want: "A volume of the Pod cannot be mounted"},
		{cause: failure.StartTimeout, text: "the job's Pod on node n1: the Pod was still starting after 10 min", want: "wait.start"},
		{cause: failure.ServiceSilent, text: "service redis (image redis:7) has ended and does not answer at port 6379: Error, exit code 1", signs: seen(failure.ServiceEnded), want: "has to stay up", not: "wait.services"},
		{cause: failure.ServiceSilent, text: "no answer within 2 min from redis at port 6379", want: "wait.services"},

		// A Pod that is lost.
		{cause: failure.PodLost, text: "job 4 has no Pod in namespace ci", signs: seen(failure.ByHand, failure.NotPrepared), want: "Run prepare first", not: "find who removes"},
		{cause: failure.PodLost, text: "the job's Pod ci/job-1-a ended: Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 200Mi. ", want: "ephemeral_storage_limit", not: "find who removes"},
		{cause: failure.PodLost, text: `Evicted: Usage of EmptyDir volume "repo" exceeds the limit "1Gi". `, want: "ephemeral_storage_limit", not: "find who removes"},
		{cause: failure.PodLost, text: "Evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi.", want: "ran short of", not: "find who removes"},
		{cause: failure.PodLost, text: "the Pod ended before it ran: TopologyAffinityError: Resources cannot be allocated with Topology locality", want: "topology policy", not: "find who removes"},
		{cause: failure.PodLost, text: "the Pod ended before it ran: OutOfcpu: Node didn't have enough resource: cpu, requested: 2000, used: 1200, capacity: 2000", want: "had no room for it", not: "find who removes"},
		{cause: failure.PodLost, text: "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod", want: "higher priority"},
		{cause: failure.PodLost, text: "NodeShutdown: Pod was rejected as the node is shutting down.", want: "shut down under the job"},
		{cause: failure.PodLost, text: "DeadlineExceeded: Pod was active on the node longer than the specified deadline", want: "activeDeadlineSeconds"},
		{cause: failure.PodLost, text: "the job's Pod ci/job-1-a was deleted while the stage ran", want: "find who removes"},
		{cause: failure.OutOfMemory, text: "the memory of container build was used up", signs: seen(failure.MayRaise), subject: "KUBERNETES_MEMORY_LIMIT", want: "set the variable KUBERNETES_MEMORY_LIMIT of the job", not: "have the operator raise"},
		{cause: failure.OutOfMemory, text: "the memory of container build was used up", want: "have the operator raise"},
		{cause: failure.NodeLost, text: "node n1 is gone", want: "retry: when"},
		{cause: failure.AgentRemoved, text: `exec: "/tenant-executor/podagent": stat /tenant-executor/podagent: no such file or directory`, want: "emptied the folder", not: "needs a shell"},

		// Images, and what the node makes of them.
		{cause: failure.HelperUnusable, text: "readying the helper container ended with exit code 1: setup: line 29: /tenant-executor/podagent.new: Permission denied the agent does not run here as it was sent (2150400 bytes)", want: "mounted noexec", not: "set helper_image"},
		{cause: failure.HelperUnusable, text: "readying the helper container ended with exit code 1: cat: write error: No space left on device", want: "disk is full", not: "set helper_image"},
		{cause: failure.HelperUnusable, text: "container helper with image h:1: the registry does not have the image: ErrImagePull: not found", want: "correct helper_image"},
		{cause: failure.HelperUnusable, text: "the helper image alpine has neither gitlab-runner nor gitlab-runner-helper", want: "set helper_image to GitLab's"},
		{cause: failure.RegistryDown, text: `the registry does not answer or fails, for 2 min: ErrImagePull: failed to do request: Head "https://nowhere.example/v2/x": dial tcp: lookup nowhere.example on 10.0.0.1:53: no such host`, want: "could not resolve", not: "once the registry is well"},
		{cause: failure.RegistryDown, text: `Head "https://nowhere.example/v2/x": dial tcp: lookup nowhere.example: read udp 10.202.0.2->10.0.0.1:53: i/o timeout`, want: "could not resolve", not: "once the registry is well"},
		{cause: failure.RegistryDown, text: `Head "https://r.example/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority`, want: "certificate authority"},
		{cause: failure.RegistryDown, text: "502 Bad Gateway", want: "once the registry is well"},

		// A person at a terminal.
		{cause: failure.Settings, text: "the configuration; name another file with --config or TENANT_EXECUTOR_CONFIG: open /etc/tenant-executor/config.toml: no such file or directory", signs: seen(failure.ByHand), want: "Name the file with --config", not: "The operator has to"},
		{cause: failure.Settings, text: "the page in /x/y (--html): open /x/y: no such file or directory", signs: seen(failure.ByHand), want: "Name a file that you may write", not: "The operator has to"},
		{cause: failure.Settings, text: "the configuration: open /etc/tenant-executor/config.toml: permission denied", signs: seen(failure.ByHand), want: "as the runner's user", not: "The operator has to"},
		{cause: failure.Settings, text: "the configuration: cluster.url is missing", want: "correct the configuration file"},
		{cause: failure.Contract, text: "the script of stage build_script: open nofile.sh: no such file or directory", signs: seen(failure.ByHand), want: "Name a script file", not: "by hand with --job"},
		{cause: failure.Contract, text: "the job in j.json: reading the job response: unexpected end of JSON input", signs: seen(failure.ByHand), want: "Name a job file", not: "by hand with --job"},
		{cause: failure.Contract, text: "JOB_RESPONSE_FILE is not set and no --job FILE is given", want: "by hand with --job"},

		// One a cause, where nothing else is known.
		{cause: failure.JobInvalid, text: "the service x of the job", want: "Correct the job's definition"},
		{cause: failure.Unsupported, text: "x", want: "another executor"},
		{cause: failure.Overwrite, text: "x", want: "Correct or remove the variable"},
		{cause: failure.ImageMissing, text: "job 1 names no image", want: "Add \"image:\""},
		{cause: failure.NotAllowed, text: "x", want: "Use what the message says is allowed"},
		{cause: failure.ImagePull, text: "not found", want: "Check the image's name and tag"},
		{cause: failure.ImageDenied, text: "unauthorized", want: "DOCKER_AUTH_CONFIG"},
		{cause: failure.ImageInvalid, text: "couldn't parse image name", want: "Correct \"image:\""},
		{cause: failure.ImageAbsent, text: "never", want: "another pull_policy"},
		{cause: failure.ImagePlatform, text: "exec format error", want: "node's architecture"},
		{cause: failure.ImageUnusable, text: "exec: \"sh\": executable file not found in $PATH", want: "needs a shell"},
		{cause: failure.ServiceUnusable, text: "exec: \"x\": executable file not found in $PATH", want: "entrypoint and command"},
		{cause: failure.ClusterLacks, text: `secret "a" not found`, want: "has to provide it"},
		{cause: failure.BuildsFolder, text: "permission denied", want: "fs_group"},
		{cause: failure.Oversized, text: "cpu 64", want: "Ask for less. If nodes"},
		{cause: failure.NoJob, text: "job 4 has no Pod", want: "tenant-executor ps"},
		{cause: failure.ClusterUnknown, text: "no object", want: "on the kcp side"},
		{cause: failure.Credentials, text: "expired", want: "replace or correct the file"},
		{cause: failure.Access, text: "pods is forbidden", want: "examples/rbac.yaml"},
		{cause: failure.ImageStalled, text: "x", want: "wait.registry"},
		{cause: failure.RegistryLimit, text: "429", want: "Retry the job later"},
		{cause: failure.ReachTimeout, text: "x", want: "wait.reach"},
		{cause: failure.ConnectionLost, text: "x", want: "may have gone on"},
		{cause: failure.StageLost, text: "x", want: "kill -9 -1"},
		{cause: failure.DiskFull, text: "x", want: "Write less"},
		{cause: failure.Internal, text: "x", want: "Report it"},
	} {
		f := failure.Wrap(c.cause, errors.New(c.text), "x")
		for _, sign := range c.signs {
			f.Seen(sign, c.subject)
		}
		got := f.Remedy()
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\n got %q\nwant %q", c.cause, c.text, got, c.want)
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %s\n got %q, which is not what was seen", c.cause, c.text, got)
		}
		if c.subject != "" {
			got = strings.ReplaceAll(got, c.subject, "%s")
		}
		led[got] = true
	}
	for _, r := range failure.Remedies() {
		if !led[r.Text] {
			t.Errorf("no message leads to the remedy %q", r.Text)
		}
	}
	for _, d := range failure.Causes() {
		if d.Remedy != "" && !led[d.Remedy] {
			t.Errorf("no message of cause %s leads to its own remedy", d.Cause)
		}
	}
}

// A remedy is made of whole sentences, whatever was seen.
func TestRemediesAreSentences(t *testing.T) {
	t.Parallel()
	all := []string{}
	for _, r := range failure.Remedies() {
		if len(r.Causes) == 0 || r.When == "" || strings.HasSuffix(r.When, ".") {
			t.Errorf("remedy %q: it is for %v when %q", r.Text, r.Causes, r.When)
		}
		all = append(all, r.Text)
	}
	for _, d := range failure.Causes() {
		if d.Remedy != "" {
			all = append(all, d.Remedy)
		}
	}
	sentence := regexp.MustCompile(`^[A-Z\[].*([.]|tenant-executor ps)$`)
	for _, text := range all {
		if !sentence.MatchString(text) || strings.Contains(text, "  ") || strings.Contains(text, "()") {
			t.Errorf("not whole sentences: %q", text)
		}
	}
}
