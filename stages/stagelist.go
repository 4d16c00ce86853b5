package stages

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// StageView is a stage that runs or has run in a job's Pod.
type StageView struct {
	// Name is the stage's name in the Pod, Container where it runs.
	Name      string        `json:"name"`
	Container job.Container `json:"container"`
	// Started is by the node's clock.
	Started time.Time `json:"started"`
	Ended   bool      `json:"ended"`
	// ExitCode is that of a stage that has ended.
	ExitCode int `json:"exitCode"`
}

// Title is the stage's name as the runner knows it.
func (v StageView) Title() string { return stageSuffix().ReplaceAllString(v.Name, "") }

// stageSuffix is what tells two runs of one stage apart.
func stageSuffix() *regexp.Regexp { return regexp.MustCompile(`-[0-9a-f]{6}$`) }

// Asking the Pods of an overview for their stages: how long, and how many at
// once.
const (
	stagesBudget  = 3 * time.Second
	stagesAtOnce  = 8
	stagesUnknown = "the Pod does not say which stage runs"
)

// Stages lists the stages of the job's Pod, oldest first.
func (d *Driver) Stages(ctx context.Context) ([]StageView, error) {
	ref, err := d.findPod(ctx)
	if err != nil {
		return nil, err
	}
	return d.stagesOf(ctx, ref)
}

func (d *Driver) stagesOf(ctx context.Context, ref pods.Ref) ([]StageView, error) {
	containers := []job.Container{job.Build, job.Helper}
	lists, failures := make([][]agent.Entry, len(containers)), make([]error, len(containers))
	var asking sync.WaitGroup
	for i, container := range containers {
		asking.Go(crash.Guard(ctx, func() { lists[i], failures[i] = d.listStages(ctx, ref, container) }))
	}
	asking.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, failures[slices.IndexFunc(failures, func(err error) bool { return err != nil })]
	}
	var all []StageView
	for i, container := range containers {
		for _, e := range lists[i] {
			all = append(all, StageView{Name: e.Stage, Container: container, Started: e.Started, Ended: e.Ended, ExitCode: exitOf(e.Status)})
		}
	}
	slices.SortStableFunc(all, func(a, b StageView) int { return a.Started.Compare(b.Started) })
	return all, nil
}

// exitOf is the exit code by which shells tell a status.
func exitOf(s agent.Status) int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Exit
}

// addStages asks the Pods that run for the stage that runs in them.
func (d *Driver) addStages(ctx context.Context, jobs []JobView) {
	ctx, cancel := context.WithTimeout(ctx, stagesBudget)
	defer cancel()
	turns := make(chan struct{}, stagesAtOnce)
	var asking sync.WaitGroup
	for i := range jobs {
		j := &jobs[i]
		if j.Phase != JobRunning && j.Phase != JobHeld {
			continue
		}
		asking.Go(crash.Guard(ctx, func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			all, err := d.stagesOf(ctx, pods.Ref{Namespace: j.Namespace, Name: j.Pod})
			if err != nil {
				j.Waits = stagesUnknown
				return
			}
			for _, s := range all {
				if !s.Ended {
					j.Stage = &s
				}
			}
		}))
	}
	asking.Wait()
}
