package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube"
	"github.com/socialweb-computer/tenant-executor/kube/access"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/stages"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// Parts are what an examination works with.
type Parts struct {
	// ConfigFile is the driver's configuration; Settings reads it.
	ConfigFile string
	Settings   func() (settings.Settings, error)
	// RunnerFile is the runner's config.toml. Named is whether somebody asked
	// for it, so that it has to be there.
	RunnerFile string
	Named      bool
	// Runner is the short token of one runner, "" for all that call the driver.
	Runner string
	// Env is the process's environment, UserAgent its name in audit logs.
	Env       job.Environment
	UserAgent string
	Clock     pods.Clock
	// Host looks at the host of the driver, without changing anything.
	Host func(*state.Folder) stages.Host

	// Probe has a Pod made and looked at. GitLab is the address that it tries,
	// "" for that of the runner. Log tells how it goes.
	Probe  bool
	GitLab string
	Log    joblog.Log
}

// patient is what is known so far. Checks add to it, for those after them.
type patient struct {
	Parts
	settings settings.Settings
	config   cluster.Config
	files    cluster.Files
	server   cluster.Server
	client   *cluster.Client
	runners  runnerFile
	ours     []runnerEntry
	probed   *probeFacts
}

func lookConfigFile(_ context.Context, p *patient) Result {
	info, err := readable(p.ConfigFile)
	return judgeConfigFile(p.ConfigFile, info, err)
}

// readable opens a file as its reader would, and describes it.
func readable(path string) (fs.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return file.Stat()
}

func lookConfigValues(_ context.Context, p *patient) []Result {
	var err error
	if p.settings, err = p.Settings(); err == nil {
		c := p.settings.Cluster
		p.config = cluster.Config{URL: c.URL, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile, UserAgent: p.UserAgent}
		if c.InCluster {
			p.config, _ = cluster.InCluster(p.Env) // the check "route" tells
			p.config.UserAgent = p.UserAgent
		}
		if p.config.CAFile != "" {
			p.files = cluster.ReadFiles(p.config)
		}
	}
	return judgeConfigValues(p.ConfigFile, err)
}

func lookRoute(ctx context.Context, p *patient) Result {
	c := p.settings.Cluster
	f := found{url: p.config.URL}
	switch {
	case c.InCluster:
		_, f.err = cluster.InCluster(p.Env)
	case c.DiscoverCluster != "":
		finder := stages.Finder{UserAgent: p.UserAgent, Env: p.Env, Memory: readOnly{p.folder()}}
		f = discover(ctx, finder.Discovery(c))
		p.config.URL = f.url
	}
	return judgeRoute(c, f)
}

// discover asks the kcp side. A stage waits for longer than doctor does, and
// then goes where the cluster was last.
func discover(ctx context.Context, d cluster.Discovery) found {
	var f found
	f.url, f.fallen, f.err = d.Find(ctx)
	if !errors.Is(f.err, context.DeadlineExceeded) {
		return f
	}
	silent := &cluster.FindError{Kind: cluster.Silent, Text: fmt.Sprintf("the kcp side (%s) does not answer within %s", d.Kubeconfig, checkLimit)}
	if url := d.Remembered(); url != "" {
		return found{url: url, fallen: silent}
	}
	return found{err: silent}
}

// readOnly remembers nothing anew: doctor may run as another user than the
// driver, to whom the files would then belong.
type readOnly struct{ *state.Folder }

func (readOnly) WriteFile(string, []byte) error { return state.ErrNone }

// folder is the state folder, nil where there is none that can be used. It is
// not made: it would belong to whoever runs doctor.
func (p *patient) folder() *state.Folder {
	if _, err := os.Stat(p.settings.State.Dir); err != nil {
		return nil
	}
	folder, err := state.Visit(p.settings.State.Dir)
	if err != nil {
		return nil
	}
	return folder
}

func lookHelperImage(_ context.Context, p *patient) Result {
	return judgeHelperImage(p.settings.Kubernetes.HelperImage)
}

func lookCA(_ context.Context, p *patient) Result {
	if p.config.CAFile == "" {
		return skip("route tells why")
	}
	return judgeCA(p.config.CAFile, p.files, p.Clock.Now())
}

func lookKey(_ context.Context, p *patient) Result {
	switch {
	case p.config.TokenFile != "" && p.files.KeyErr != nil:
		return failed(p.files.KeyErr.Error(), "have the Pod's service account mounted (automountServiceAccountToken)")
	case p.settings.Cluster.InCluster:
		return ok("%s", tokenUsed)
	}
	return judgeKey(p.config.KeyFile, p.files)
}

func lookCertificate(_ context.Context, p *patient) Result {
	if p.settings.Cluster.InCluster {
		return ok("%s", tokenUsed)
	}
	return judgeCertificate(p.config.CertFile, p.files)
}

func lookExpiry(_ context.Context, p *patient) Result {
	if p.settings.Cluster.InCluster {
		return ok("%s", tokenUsed)
	}
	return judgeExpiry("the client certificate "+p.config.CertFile, p.files.Client[0], p.Clock.Now())
}

func lookServer(ctx context.Context, p *patient) Result {
	server, err := cluster.Look(ctx, p.config, p.Clock.Now)
	p.server = server
	var diagnosis error
	if err != nil && ctx.Err() == nil && cluster.Foreign(err) {
		diagnosis = cluster.Diagnose(ctx, p.config, p.Clock.Now)
	}
	return judgeServer(p.config.URL, server, err, diagnosis, p.presentable())
}

// presentable says whether the driver has a client certificate that a server may
// take.
func (p *patient) presentable() bool {
	if p.settings.Cluster.InCluster {
		return false
	}
	f := p.files
	return f.KeyErr == nil && f.ClientErr == nil && f.PairErr == nil && judgeExpiry("", f.Client[0], p.Clock.Now()).State != Failure
}

func lookServerCertificate(_ context.Context, p *patient) Result {
	if p.server.Certificate == nil {
		return skip("the apiserver has shown none")
	}
	r := judgeExpiry("the apiserver's certificate", p.server.Certificate, p.Clock.Now())
	if r.Remedy != "" {
		r.Remedy = "have the tenant cluster renew it (a restart of its apiserver may do), or set this host's clock right"
	}
	return r
}

func lookClock(_ context.Context, p *patient) Result { return judgeClock(p.server.Date, p.Clock.Now()) }

func lookIdentity(ctx context.Context, p *patient) Result {
	client, err := cluster.Connect(ctx, cluster.Fixed(p.config))
	if err != nil {
		return judgeIdentity(access.Caller{}, err, nil)
	}
	p.client = client
	caller, err := access.WhoAmI(ctx, client)
	var diagnosis error
	if err != nil && cluster.Foreign(err) {
		diagnosis = cluster.Diagnose(ctx, p.config, p.Clock.Now)
	}
	return judgeIdentity(caller, err, diagnosis)
}

func lookRights(ctx context.Context, p *patient) []Result {
	rights := kube.Rights()
	namespace := p.settings.Kubernetes.Namespace
	if p.settings.Kubernetes.NamespacePerJob {
		namespace = ""
	} else {
		rights = slices.DeleteFunc(rights, func(r kube.Right) bool { return r.PerJob })
	}
	denied, err := access.Denied(ctx, p.client, namespace, rights)
	return judgeRights(denied, err, len(rights), namespace)
}

func lookNamespace(ctx context.Context, p *patient) Result {
	driver, err := p.driver(ctx)
	if err == nil {
		err = driver.Rehearse(ctx)
	}
	return judgeNamespace(p.settings.Kubernetes.Namespace, err)
}

func lookNodes(ctx context.Context, p *patient) Result {
	count, err := capacity.NewNodes(p.client, checkLimit).Count(ctx)
	return judgeNodes(count, p.settings.Tenant.Ceiling, err)
}

func lookPodsPerNode(_ context.Context, p *patient) Result {
	return judgePodsPerNode(p.settings.Tenant.PodsPerNode)
}

func lookWarm(_ context.Context, p *patient) Result {
	return judgeWarm(p.settings.Warm, p.settings.Tenant.Ceiling)
}

func lookRunnerFile(_ context.Context, p *patient) Result {
	info, err := readable(p.RunnerFile)
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(p.RunnerFile); err == nil {
			p.runners, err = parseRunnerFile(text)
		}
	}
	return judgeRunnerFile(p.RunnerFile, p.Named, info, err)
}

func lookRunnerEntry(_ context.Context, p *patient) Result {
	ours, customs := p.runners.ours(p.Runner)
	p.ours = ours
	return judgeRunnerEntry(ours, customs, p.Runner)
}

// eachRunner judges each entry by itself.
func (p *patient) eachRunner(judge func(runnerEntry) []Result) []Result {
	var all []Result
	for _, r := range p.ours {
		all = append(all, judge(r)...)
	}
	return all
}

func lookRunnerPrograms(_ context.Context, p *patient) []Result {
	missing := func(program string) error {
		_, err := exec.LookPath(program)
		var failed *exec.Error
		if errors.As(err, &failed) {
			return reason(failed.Err)
		}
		return err
	}
	return p.eachRunner(func(r runnerEntry) []Result {
		return append(judgeRunnerPrograms(r, missing, p.ConfigFile), judgeRunnerOverridden(r, p.settings)...)
	})
}

func lookRunnerJobs(_ context.Context, p *patient) []Result {
	return judgeRunnerJobs(p.runners, p.ours, p.settings.Tenant.Ceiling)
}

func lookRunnerHold(_ context.Context, p *patient) Result {
	return judgeRunnerHold(p.runners, p.settings.Tenant.Hold.Value())
}

func lookRunnerPrepare(_ context.Context, p *patient) []Result {
	return p.eachRunner(func(r runnerEntry) []Result { return []Result{judgeRunnerPrepare(r, p.settings.Wait)} })
}

func lookRunnerCancel(_ context.Context, p *patient) []Result {
	return p.eachRunner(func(r runnerEntry) []Result { return []Result{judgeRunnerCancel(r, p.settings.Run)} })
}

func lookRunnerCleanup(_ context.Context, p *patient) []Result {
	return p.eachRunner(func(r runnerEntry) []Result {
		return []Result{judgeRunnerCleanup(p.runners, r, p.settings.Cleanup)}
	})
}

func lookRunnerCheckout(_ context.Context, p *patient) []Result {
	return p.eachRunner(judgeRunnerCheckout)
}

func lookRunnerURL(_ context.Context, p *patient) []Result {
	return p.eachRunner(func(r runnerEntry) []Result { return []Result{judgeRunnerURL(r)} })
}

func lookLeftovers(ctx context.Context, p *patient) Result {
	runners := []string{p.Runner}
	if p.Runner == "" {
		runners = nil
		for _, r := range p.ours {
			runners = append(runners, r.short())
		}
	}
	if len(runners) == 0 {
		return skip("the runner is not known; name its short token with --runner, or its config.toml with --runner-config")
	}
	folder := p.folder()
	var all []leftoverFacts
	for _, runner := range runners {
		parts := stages.ReapParts{
			Settings: p.settings, Find: cluster.Fixed(p.config), State: folder, StateErr: errNoFolder,
			Runner: runner, Host: p.Host(folder), Clock: p.Clock, DryRun: true,
			Warn: func(string) {}, // the check "rights" tells
		}
		one := leftoverFacts{runner: runner}
		one.found, one.err = stages.Reap(ctx, parts)
		if errors.Is(one.err, errNoFolder) {
			one.err = nil // the check "state-folder" tells
		}
		if parts.Host.Machine.Identity != "" && one.err == nil {
			one.elsewhere, one.err = stages.Elsewhere(ctx, parts)
		}
		all = append(all, one)
	}
	return judgeLeftovers(all)
}
