package stages

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// lastLines is how many lines of a service's log tell of its end, and
// longestTold how much of each, in bytes.
const (
	lastLines   = 20
	longestTold = 500
)

// stageContainers are the containers that a Pod cannot do without. Services may
// end.
func stageContainers() []string { return []string{string(job.Build), string(job.Helper)} }

// stateOf is the state of a job's Pod: one whose services have ended runs.
func stateOf(p *corev1.Pod) pods.State { return pods.StateOf(p, stageContainers()...) }

// services are the job's services.
func (d *Driver) services() ([]pod.Service, error) {
	return pod.Plan{Job: d.job, Settings: d.settings.Kubernetes, Variables: d.variables}.JobServices()
}

// attendance looks after the job's containers while a stage runs: it tells the
// end of a service, once a job, and shows what containers say where the job wants
// it.
// The methods of a nil attendance do nothing.
type attendance struct {
	driver   *Driver
	ref      pods.Ref
	services []pod.Service
	told     *bookmark
	// logs shows what containers say; nil if nobody wants it.
	logs *containerLogs

	// looking is held while the services are looked at.
	looking sync.Mutex
	over    bool
}

// attend begins the attendance of a stage, nil for a job with nothing to look
// after, and gives where the stage's output is to go.
func (d *Driver) attend(ctx context.Context, ref pods.Ref, out io.Writer) (*attendance, io.Writer) {
	services, err := d.services()
	sources := d.logSources(services)
	if err != nil || len(services) == 0 && len(sources) == 0 {
		return nil, out // prepare has refused what cannot be
	}
	a := &attendance{driver: d, ref: ref, services: services, told: openBookmark(d.variables, ref.Name)}
	if len(sources) == 0 {
		return a, out
	}
	mixer := joblog.NewMixer(out)
	a.logs = d.containerLogs(ctx, ref, a.told, sources, mixer)
	a.logs.beginAll()
	return a, mixer
}

// isTrue reads a variable as the runner does (common/spec/variables.go, Bool).
func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "1", "t", "true":
		return true
	}
	return false
}

// look tells which services have ended, as the Pod says.
func (a *attendance) look(ctx context.Context, found *corev1.Pod) {
	if a == nil || found.DeletionTimestamp != nil {
		return
	}
	a.looking.Lock()
	defer a.looking.Unlock()
	if a.over {
		return // the driver may be gone before it has told anything
	}
	news := false
	for _, over := range stateOf(found).Over {
		for _, s := range a.services {
			if s.Container == over.Container && a.told.tell(s.Container) {
				a.tell(ctx, s, over)
				news = true
			}
		}
	}
	if news {
		a.driver.save(a.told)
	}
}

// tell tells the end of a service. One that has done its work and ended well is
// not worth a warning.
func (a *attendance) tell(ctx context.Context, s pod.Service, over pods.Problem) {
	log := a.driver.log
	if over.Kind == pods.Exited && over.Code == 0 {
		log.Info("Service %s (container %s) has ended, with exit code 0. The job goes on.", s.Label, s.Container)
		return
	}
	log.Warn("Service %s (container %s, image %s) has ended: %s. The job goes on without it.", s.Label, s.Container, s.Image, a.driver.endOf(over))
	lines := a.driver.lastWords(ctx, a.ref, s)
	if clash := s.Clash(a.services, lines); clash != "" {
		log.Warn("%s", clash)
	}
}

// endOf says how a service ended.
func (d *Driver) endOf(over pods.Problem) string {
	switch over.Kind {
	case pods.OutOfMemory:
		return "it used more memory than its limit, which service_memory_limit sets and, where the operator allows it, the service's variable KUBERNETES_SERVICE_MEMORY_LIMIT"
	case pods.NotStartable:
		return fmt.Sprintf("it could not be started: %s", over.Message)
	}
	return fmt.Sprintf("%s, exit code %d", over.Reason, over.Code)
}

// lastWords gives the last lines of a service's log, and shows them. Where the
// job's author sees all that services say, they are not shown twice.
func (d *Driver) lastWords(ctx context.Context, ref pods.Ref, s pod.Service) []string {
	show := !d.showsServices()
	found, err := d.lastLines(ctx, ref, s.Container)
	if err != nil {
		d.log.Warn("What service %s said last cannot be read: %v", s.Label, err)
		return nil
	}
	if len(found) == 0 && show {
		d.log.Info("It has not said anything.")
	}
	var lines []string
	for _, line := range found {
		lines = append(lines, line.Text)
		if show {
			d.log.Service(s.Label, shortened(line.Text))
		}
	}
	return lines
}

// lastLines are the last lines of a container's log.
func (d *Driver) lastLines(ctx context.Context, ref pods.Ref, container string) ([]pods.LogLine, error) {
	limited, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	return d.pods.LastLines(limited, ref, container, lastLines)
}

// shortened is as much of a line as is shown.
func shortened(text string) string {
	if len(text) > longestTold {
		return text[:longestTold] + "…"
	}
	return text
}

// end ends the attendance with the stage, within a time. Services are looked at
// once more, since a short stage has not looked at them at all.
func (a *attendance) end(ctx context.Context, limit time.Duration) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	done := make(chan struct{})
	crash.Go(ctx, func() {
		defer close(done)
		a.logs.end(ctx)
		if len(a.services) > 0 {
			if found, err := a.driver.pods.Get(ctx, a.ref); err == nil {
				a.look(ctx, found)
			}
		}
		a.looking.Lock()
		defer a.looking.Unlock()
		a.over = true
		a.driver.save(a.told)
	})
	select {
	case <-done:
	case <-ctx.Done(): // nobody may be reading the job log
	}
}

// save remembers what was told. If it cannot be, the next stage tells it again,
// which the reader of the job log will see.
func (d *Driver) save(told *bookmark) {
	if err := told.save(); err != nil {
		d.log.Warn("What services have said may be shown twice: %v", err)
	}
}
