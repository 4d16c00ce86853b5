package doctor

import "context"

// Groups of checks, as headings.
const (
	groupConfiguration = "configuration"
	groupCredentials   = "credentials"
	groupCluster       = "cluster"
	groupCapacity      = "capacity"
	groupHost          = "host"
	groupRunner        = "runner"
	groupProbe         = "probe"
)

// probeEnd is the check that is made also when doctor is interrupted.
const probeEnd = "probe-end"

// Check is one row of the table of checks.
type Check struct {
	// Name is stable: scripts and documentation refer to it.
	Name, Group string
	// Question is what the check answers.
	Question string
	// Needs are the checks without whose success this one tells nothing.
	Needs []string

	look func(context.Context, *patient) []Result
}

// Checks is the table of all checks, in the order in which they are made: what
// others rest on comes first.
func Checks() []Check { return checks() }

func checks() []Check {
	one := func(look func(context.Context, *patient) Result) func(context.Context, *patient) []Result {
		return func(ctx context.Context, p *patient) []Result { return []Result{look(ctx, p)} }
	}
	// Whoever asks the cluster something as its user.
	const known = "identity"
	return []Check{
		{"config-file", groupConfiguration, "Is the configuration file there, and may its owner alone write to it?", nil, one(lookConfigFile)},
		{"config-values", groupConfiguration, "Is every key known, and does every value make sense?", []string{"config-file"}, lookConfigValues},
		{"route", groupConfiguration, "Where is the cluster, and is the address a loopback one?", []string{"config-values"}, one(lookRoute)},
		{"helper-image", groupConfiguration, "Is the helper image named, with a version of its own?", []string{"config-values"}, one(lookHelperImage)},

		{"ca", groupCredentials, "Can the cluster's CA be read, and is it valid?", []string{"config-values"}, one(lookCA)},
		{"key", groupCredentials, "Can the key be read, by the driver alone?", []string{"config-values"}, one(lookKey)},
		{"certificate", groupCredentials, "Can the client certificate be read, and is the key its own?", []string{"key"}, one(lookCertificate)},
		{"expiry", groupCredentials, "Is the client certificate valid, and for how long?", []string{"certificate"}, one(lookExpiry)},

		{"apiserver", groupCluster, "Does the apiserver answer, and is its certificate of the CA?", []string{"route", "ca"}, one(lookServer)},
		{"server-certificate", groupCluster, "Is the apiserver's certificate valid, and for how long?", []string{"apiserver"}, one(lookServerCertificate)},
		{"clock", groupCluster, "Do this host and the cluster agree about the time?", []string{"apiserver"}, one(lookClock)},
		{"identity", groupCluster, "Whom does the cluster take the driver for?", []string{"apiserver", "key", "certificate", "expiry"}, one(lookIdentity)},
		{"rights", groupCluster, "May the driver do all that it needs to do?", []string{known}, lookRights},
		{"namespace", groupCluster, "Is the namespace there, and would the cluster take a job's Pod?", []string{known}, one(lookNamespace)},

		{"nodes", groupCapacity, "Are the nodes ready, and no more than the ceiling?", []string{known}, one(lookNodes)},
		{"pods-per-node", groupCapacity, "Does the gateway count one Pod for a node?", []string{"config-values"}, one(lookPodsPerNode)},
		{"warm", groupCapacity, "Do nodes that are kept leave room for jobs?", []string{"config-values"}, one(lookWarm)},

		{"runner-file", groupRunner, "Can the runner's config.toml be read, by its owner alone?", nil, one(lookRunnerFile)},
		{"runner-entry", groupRunner, "Does a [[runners]] entry have the custom executor call this driver?", []string{"runner-file"}, one(lookRunnerEntry)},
		{"runner-programs", groupRunner, "Are the programs of all four stages there, with the right arguments?", []string{"runner-entry"}, lookRunnerPrograms},
		{"runner-jobs", groupRunner, "Do concurrent and limit fit the ceiling?", []string{"config-values", "runner-entry"}, lookRunnerJobs},
		{"runner-hold", groupRunner, "Are nodes still there when the next job comes?", []string{"config-values", "runner-entry"}, one(lookRunnerHold)},
		{"runner-prepare", groupRunner, "Has prepare the time that the driver's own waits take?", []string{"config-values", "runner-entry"}, lookRunnerPrepare},
		{"runner-cancel", groupRunner, "Has a cancelled stage the time to end?", []string{"config-values", "runner-entry"}, lookRunnerCancel},
		{"runner-cleanup", groupRunner, "Has cleanup the time to end, also when the runner shuts down?", []string{"config-values", "runner-entry"}, lookRunnerCleanup},
		{"runner-checkout", groupRunner, "Does git accept the repository, and may jobs choose their folder?", []string{"runner-entry"}, lookRunnerCheckout},
		{"runner-url", groupRunner, "Can GitLab's address be one that Pods reach?", []string{"runner-entry"}, lookRunnerURL},

		{"state-folder", groupHost, "Can the driver remember what it needs, for itself alone?", []string{"config-values"}, one(lookState)},
		{"outside", groupHost, "Can the files of [metrics] and [log] be written?", []string{"config-values"}, one(lookOutside)},
		{"leftovers", groupHost, "Is anything left over of the runner's jobs?", []string{"rights"}, one(lookLeftovers)},

		{"probe-pod", groupProbe, "Does a node come, and does a job's Pod start on it?", []string{"rights", "namespace"}, one(lookProbePod)},
		{"probe-exec", groupProbe, "Do commands reach the Pod?", []string{"probe-pod"}, one(lookProbeExec)},
		{"probe-helper", groupProbe, "Has the helper image what every job needs?", []string{"probe-exec"}, one(lookProbeHelper)},
		{"probe-dns", groupProbe, "Does the Pod find GitLab's host by its name?", []string{"probe-exec"}, one(lookProbeDNS)},
		{"probe-gitlab", groupProbe, "Does the Pod reach GitLab?", []string{"probe-dns"}, one(lookProbeGitLab)},
		{"probe-second", groupProbe, "Does a second job's Pod get a node of its own?", []string{"probe-pod"}, one(lookProbeSecond)},
		{probeEnd, groupProbe, "Is the probe's Pod gone again?", []string{"rights", "namespace"}, one(lookProbeEnd)},
	}
}
