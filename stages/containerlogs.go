package stages

import (
	"context"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Times of showing the logs of containers.
const (
	// logsAgain is how long it waits before it asks for a log again that has
	// ended or broken off.
	logsAgain = time.Second
	// logsSaved is how often it is remembered how far they were shown.
	logsSaved = time.Second
)

// logSource is a container whose log is shown in the job log.
type logSource struct {
	container string
	// who is who speaks there, in words.
	who string
	// line is how the job log shows what it says, with the time of its line.
	line func(time, text string) string
}

// logSources are the containers of the job whose logs are shown: that of an
// image whose entrypoint runs, as it has a say before any script has, and the
// services where the job wants it.
func (d *Driver) logSources(services []pod.Service) []logSource {
	var all []logSource
	if pod.Flag(d.variables, pod.FlagEntrypoint) {
		all = append(all, logSource{
			container: string(job.Build), who: "the image's entrypoint",
			line: func(_, text string) string { return text + "\n" },
		})
	}
	if !d.showsServices() {
		return all
	}
	for _, s := range services {
		all = append(all, logSource{
			container: s.Container, who: "service " + s.Label,
			// With its time, as the runner shows it: a line of the time between
			// two stages comes late.
			line: func(time, text string) string { return joblog.ServiceLine(s.Label, time+" "+text) },
		})
	}
	return all
}

// showsServices says whether the job wants to see what its services say.
func (d *Driver) showsServices() bool { return isTrue(d.variables.Variable("CI_DEBUG_SERVICES")) }

// containerLogs shows the logs of containers while something else goes on: from
// where whoever was before has left off, to the last line that there is when it
// ends. Its methods do nothing on nil.
type containerLogs struct {
	driver  *Driver
	ref     pods.Ref
	told    *bookmark
	sources []logSource
	lines   *joblog.Mixer

	ctx   context.Context // of the following, which begins in parts
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu    sync.Mutex
	begun map[string]bool
	saved time.Time
}

// containerLogs shows the logs of the sources in lines, nil if there are none.
func (d *Driver) containerLogs(ctx context.Context, ref pods.Ref, told *bookmark, sources []logSource, lines *joblog.Mixer) *containerLogs {
	if len(sources) == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	return &containerLogs{
		driver: d, ref: ref, told: told, sources: sources, lines: lines,
		ctx: ctx, stop: stop, begun: map[string]bool{}, saved: d.clock.Now(),
	}
}

// beginAll begins to follow all of them.
func (l *containerLogs) beginAll() {
	if l == nil {
		return
	}
	for _, s := range l.sources {
		l.begin(s.container)
	}
}

// begin begins to follow the log of a container, which has started.
func (l *containerLogs) begin(container string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sources {
		if s.container == container && !l.begun[container] && l.ctx.Err() == nil {
			l.begun[container] = true
			l.ended.Go(crash.Guard(l.ctx, func() { l.follow(l.ctx, s) }))
		}
	}
}

// follow shows a container's log until ctx ends.
func (l *containerLogs) follow(ctx context.Context, s logSource) {
	clock := l.driver.clock
	for {
		err := l.show(ctx, s, true)
		switch {
		case ctx.Err() != nil:
			return
		case cluster.Denied(err):
			l.driver.log.Warn("What %s says cannot be shown: %v", s.who, err)
			return
		case err != nil:
			l.driver.cluster.Refind(ctx, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-clock.After(logsAgain):
		}
	}
}

// linesMissing is said where lines may be missing. The kubelet gives only the
// file that a container writes to now
// (pkg/kubelet/kuberuntime/kuberuntime_container.go, GetContainerLogs, in
// Kubernetes): what was written to one before, after it was last read, cannot be
// had.
const linesMissing = "Lines may be missing here: the node began a new file for this log while nobody read it."

// show shows what is new in a container's log.
func (l *containerLogs) show(ctx context.Context, s logSource, follow bool) error {
	return l.driver.pods.ReadLog(ctx, l.ref, s.container, l.told.place(s.container), follow, func(line pods.LogLine, next pods.LogPlace) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		shown := s.line(line.Time, line.Text)
		if line.Gap {
			shown = s.line(line.Time, linesMissing) + shown
		}
		if err := l.lines.Line(shown); err != nil {
			return err
		}
		l.told.move(s.container, next)
		l.saveNowAndThen()
		return nil
	})
}

// saveNowAndThen keeps a driver that is killed from leaving much to be shown
// twice.
func (l *containerLogs) saveNowAndThen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.driver.clock.Now(); now.Sub(l.saved) >= logsSaved {
		l.saved = now
		l.driver.save(l.told)
	}
}

// end shows what there still is. It waits for ctx at most: nobody may be reading
// the job log.
func (l *containerLogs) end(ctx context.Context) {
	if l == nil {
		return
	}
	l.stop()
	done := make(chan struct{})
	crash.Go(ctx, func() {
		defer close(done)
		l.ended.Wait()
		for _, s := range l.sources {
			// The next stage goes on where this one could not. A container that
			// has not started has no log.
			if l.begun[s.container] {
				_ = l.show(ctx, s, false)
			}
		}
		_ = l.lines.Flush() // a job log that cannot be written has no reader
		l.driver.save(l.told)
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}
