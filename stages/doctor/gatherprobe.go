package doctor

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/stages"
)

// The programs that run in the Pod. Their own first lines say what they do.
var (
	//go:embed shell/look.sh
	lookProgram string
	//go:embed shell/fetch.sh
	fetchProgram string
)

// Limits of a probe, beside the waits of prepare.
const (
	// probeTimeout is the probe's time-out as a job. Its Pod ends some time
	// after it, should doctor be killed.
	probeTimeout = 10 * time.Minute
	lookTimeout  = time.Minute
	// endTimeout is for the deletion, endPatience for the end of what was
	// deleted.
	endTimeout  = 30 * time.Second
	endPatience = 15 * time.Second
	endPause    = time.Second
)

// nobody is the runner of a probe whose runner is not known, so that reap finds
// the Pod.
const nobody = "doctor"

// driver is the driver of a job that does not come from GitLab. Its Pod has the
// labels of every job's, so that cleanup and reap know it.
func (p *patient) driver(ctx context.Context) (*stages.Driver, error) {
	return p.driverWith(ctx, func(*settings.Settings) {})
}

// driverWith is driver with other settings.
func (p *patient) driverWith(ctx context.Context, change func(*settings.Settings)) (*stages.Driver, error) {
	s := p.settings
	s.Warm.Linger = "0s" // nobody comes for the node
	change(&s)
	runner := p.Runner
	if runner == "" && len(p.ours) > 0 {
		runner = p.ours[0].short()
	}
	if runner == "" {
		runner = nobody
	}
	image := cmp.Or(s.Kubernetes.Image, s.Kubernetes.HelperImage)
	if image == "" {
		var err error
		if image, err = (pod.Plan{Settings: s.Kubernetes, HostArch: runtime.GOARCH}).HelperImage(); err != nil {
			return nil, err
		}
	}
	return stages.New(ctx, stages.Parts{
		Settings: s,
		Find:     cluster.Fixed(p.config),
		// Nothing is remembered: the files would belong to whoever runs doctor.
		StateErr: errNoFolder,
		Job: job.Job{
			// GitLab's ids are far from it, and two probes have two.
			ID: p.Clock.Now().UnixMilli(), Name: "tenant-executor doctor", Timeout: probeTimeout,
			Image: job.Image{Name: image}, RunnerToken: runner,
		},
		Variables: job.Environment{},
		Log:       p.Log,
		Clock:     p.Clock,
		Host:      func() stages.Host { return stages.Host{} },
	})
}

// errNoFolder is why there is no state folder.
var errNoFolder = fmt.Errorf("%w: doctor changes nothing on the host", stages.ErrNoStateWanted)

func lookProbePod(ctx context.Context, p *patient) Result {
	driver, err := p.driver(ctx)
	if err != nil {
		return ofFailure(err)
	}
	p.probed = p.probe(ctx, driver)
	return judgeProbePod(*p.probed)
}

// probe makes the Pod, looks at it and removes it, whatever happens.
func (p *patient) probe(ctx context.Context, driver *stages.Driver) *probeFacts {
	f := &probeFacts{image: p.settings.Kubernetes.Image, helper: p.settings.Kubernetes.HelperImage}
	if f.image == "" {
		f.image = f.helper
	}
	defer func() { f.endErr = p.end(context.WithoutCancel(ctx), driver) }()
	from := p.Clock.Now()
	f.prepareErr = driver.Prepare(ctx)
	p.note(ctx, driver, f, p.Clock.Now().Sub(from))
	if f.prepareErr != nil {
		return f
	}
	f.look, f.lookTook, f.lookErr = p.script(ctx, driver, lookProgram)
	if address := p.gitlab(); address != "" && f.lookErr == nil {
		f.fetch, f.fetchTook, f.fetchErr = p.script(ctx, driver, "url="+quote(address)+"\n"+fetchProgram)
	}
	f.second = p.probeSecond(ctx, f.forNode)
	return f
}

// Limits of the wait for a second node: what it may take in any case, and how
// many boots of the first.
const (
	secondNode  = 2 * time.Minute
	secondBoots = 3
	// freeNode is how long it takes where no further node can be booted: one that
	// is free is taken at once.
	freeNode = 10 * time.Second
)

// probeSecond makes a Pod beside the first one, which cannot share its node: a
// gateway that counts several Pods for a node boots none for it. Nothing runs in
// it.
func (p *patient) probeSecond(ctx context.Context, firstBoot time.Duration) *secondFacts {
	f := &secondFacts{ceiling: p.settings.Tenant.Ceiling}
	if f.ceiling < 2 {
		return f
	}
	limit := max(secondNode, secondBoots*firstBoot)
	if p.nodes(ctx) >= f.ceiling {
		limit = freeNode
	}
	driver, err := p.driverWith(ctx, func(s *settings.Settings) {
		s.Wait.Node = settings.Duration(min(s.Wait.Node.Value(), limit).String())
	})
	if err != nil {
		f.err = err
		return f
	}
	p.Log.Info("A second Pod, to see whether it gets a node of its own:")
	defer func() { f.endErr = p.end(context.WithoutCancel(ctx), driver) }()
	from := p.Clock.Now()
	f.err = driver.Prepare(ctx)
	f.took = p.Clock.Now().Sub(from)
	var pod probeFacts
	p.note(ctx, driver, &pod, f.took)
	f.node, f.booted, f.forNode = pod.node, pod.booted, pod.forNode
	f.nodes = p.nodes(ctx)
	return f
}

// nodes is how many nodes there are, 0 where that cannot be told.
func (p *patient) nodes(ctx context.Context) int {
	count, err := capacity.NewNodes(p.client, checkLimit).Count(ctx)
	if err != nil {
		return 0
	}
	return count.Total
}

// longestLook is the most that a script of the probe may print, in bytes.
const longestLook = 1 << 20

// script runs a script in the helper container, as stages do.
func (p *patient) script(ctx context.Context, driver *stages.Driver, text string) (output string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	out := bounded.Buffer{Most: longestLook}
	from := p.Clock.Now()
	err = driver.Run(ctx, []byte(text), "get_sources", &out, nil)
	return out.String(), p.Clock.Now().Sub(from), err
}

// note reads how the Pod came to run.
func (p *patient) note(ctx context.Context, driver *stages.Driver, f *probeFacts, took time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkLimit)
	defer cancel()
	list, err := driver.Pods(ctx)
	if err != nil || len(list) == 0 {
		return
	}
	newest := &list[len(list)-1]
	f.running = pods.StateOf(newest).Phase == pods.Running && newest.DeletionTimestamp == nil
	f.node = newest.Spec.NodeName
	made, bound, started := times(newest)
	f.forNode, f.forStart = max(bound.Sub(made), 0), max(started.Sub(bound), 0)
	f.forReach = max(took-started.Sub(made), 0)
	if health, err := driver.Node(ctx, f.node); err == nil {
		f.booted = health.Joined.After(made)
	}
}

// times are when a Pod was made, when it got its node, and when the last of its
// containers started.
func times(p *corev1.Pod) (made, bound, started time.Time) {
	made = p.CreationTimestamp.Time
	bound = made
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			bound = later(bound, c.LastTransitionTime.Time)
		}
	}
	started = bound
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil {
			started = later(started, c.State.Running.StartedAt.Time)
		}
	}
	return made, bound, started
}

// end removes the Pod and waits until it is gone.
func (p *patient) end(ctx context.Context, driver *stages.Driver) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := driver.Cleanup(ctx); err != nil {
		return err
	}
	late := p.Clock.After(endPatience)
	for {
		list, err := driver.Pods(ctx)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("%s is still terminating", list[0].Name)
		case <-p.Clock.After(endPause):
		}
	}
}

// gitlab is the address that the Pod is to reach, "" where it is not known.
func (p *patient) gitlab() string {
	address := p.GitLab
	if address == "" && len(p.ours) > 0 {
		address = cmp.Or(p.ours[0].CloneURL, p.ours[0].URL)
	}
	return withoutUser(address)
}

// quote makes a word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// judged judges what the probe has found.
func (p *patient) judged(judge func(probeFacts) Result) Result {
	if p.probed == nil {
		return notProbed()
	}
	return judge(*p.probed)
}

func lookProbeExec(_ context.Context, p *patient) Result { return p.judged(judgeProbeExec) }

func lookProbeHelper(_ context.Context, p *patient) Result { return p.judged(judgeProbeHelper) }

func lookProbeDNS(_ context.Context, p *patient) Result {
	return p.judged(func(f probeFacts) Result { return judgeProbeDNS(f, p.gitlab()) })
}

func lookProbeGitLab(_ context.Context, p *patient) Result {
	ownCA := len(p.ours) > 0 && p.ours[0].TLSCAFile != ""
	return p.judged(func(f probeFacts) Result { return judgeProbeGitLab(f, p.gitlab(), ownCA) })
}

func lookProbeSecond(_ context.Context, p *patient) Result { return p.judged(judgeProbeSecond) }

func lookProbeEnd(_ context.Context, p *patient) Result { return p.judged(judgeProbeEnd) }
