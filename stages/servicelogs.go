package stages

import (
	"context"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// Times of showing the services' logs.
const (
	// logsAgain is how long it waits before it asks for a log again that has
	// ended or broken off.
	logsAgain = time.Second
	// logsSaved is how often it is remembered how far they were shown.
	logsSaved = time.Second
)

// serviceLogs shows what the job's services say while a stage runs
// (CI_DEBUG_SERVICES): from where the stage before has left off, to the last line
// that there is when the stage ends. Its methods do nothing on nil.
type serviceLogs struct {
	*attendance
	mixer *joblog.Mixer
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu    sync.Mutex
	saved time.Time
}

func newServiceLogs(ctx context.Context, a *attendance, mixer *joblog.Mixer) *serviceLogs {
	ctx, stop := context.WithCancel(ctx)
	l := &serviceLogs{attendance: a, mixer: mixer, stop: stop, saved: a.driver.clock.Now()}
	for _, s := range a.services {
		l.ended.Go(func() { l.follow(ctx, s) })
	}
	return l
}

// follow shows a service's log until ctx ends.
func (l *serviceLogs) follow(ctx context.Context, s pod.Service) {
	clock := l.driver.clock
	for {
		err := l.show(ctx, s, true)
		switch {
		case ctx.Err() != nil:
			return
		case cluster.Denied(err):
			l.driver.log.Warn("What service %s says cannot be shown: %v", s.Label, err)
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

// show shows what is new in a service's log.
func (l *serviceLogs) show(ctx context.Context, s pod.Service, follow bool) error {
	return l.driver.pods.ReadLog(ctx, l.ref, s.Container, l.told.place(s.Container), follow, func(line pods.LogLine, next pods.LogPlace) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		// With its time, as the runner shows it: a line of the time between two
		// stages comes late.
		if err := l.mixer.Line(joblog.ServiceLine(s.Label, line.Time+" "+line.Text)); err != nil {
			return err
		}
		l.told.move(s.Container, next)
		l.saveNowAndThen()
		return nil
	})
}

// saveNowAndThen keeps a driver that is killed from leaving much to be shown
// twice.
func (l *serviceLogs) saveNowAndThen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.driver.clock.Now(); now.Sub(l.saved) >= logsSaved {
		l.saved = now
		l.save()
	}
}

// end shows what there still is. It waits for ctx at most: nobody may be reading
// the job log.
func (l *serviceLogs) end(ctx context.Context) {
	if l == nil {
		return
	}
	l.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.ended.Wait()
		for _, s := range l.services {
			// The next stage goes on where this one could not.
			_ = l.show(ctx, s, false)
		}
		_ = l.mixer.Flush() // a job log that cannot be written has no reader
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
