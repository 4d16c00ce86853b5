package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/joblog"
)

// execution is one job on its way. The order of things follows Build.Run of
// GitLab Runner (common/build.go).
type execution struct {
	runner *Runner
	build  *build.Build
	opts   Options
	log    *joblog.Log
	logger *slog.Logger
	// alive ends when the runner itself stops.
	alive context.Context

	mu       sync.Mutex
	cancel   context.CancelFunc // what Options.Cancel calls
	calls    []Call
	attempts int
	left     bool
}

// run takes the job from its first call to its result.
func (x *execution) run(ctx context.Context) Result {
	began := x.runner.cfg.Now()
	res := outcome(x.whole(ctx), x.build.Job.Features.FailureReasons)
	switch {
	case res.Status == Success:
		x.log.Info("Job succeeded")
	case res.FailureReason == build.ReasonSystem:
		x.log.Error("Job failed (system failure): " + res.Message)
	default:
		x.log.Error("Job failed: " + res.Message)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	res.Calls, res.Attempts = x.calls, x.attempts
	res.Duration = x.runner.cfg.Now().Sub(began)
	return res
}

func (x *execution) whole(ctx context.Context) error {
	x.header()
	ctx, abort := context.WithTimeout(ctx, x.build.Timeout())
	defer abort()
	x.onCancel(abort)
	defer x.watch(abort)()

	limit := x.limit("prepare_timeout", time.Duration(x.build.Runner.PrepareTimeout))
	prepareCtx, done := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w: exceeded timeout of %s", errPrepareTimeout, limit))
	defer done()
	a, err := x.prepare(prepareCtx)
	if err != nil {
		return timeoutOr(err, prepareCtx, errPrepareTimeout)
	}
	defer a.cleanup()
	return x.supervise(ctx, prepareCtx, a)
}

func (x *execution) header() {
	r := x.build.Runner
	x.log.Println(fmt.Sprintf("Running with localrunner, as gitlab-runner %s (%s) does", build.RunnerVersion, build.RunnerRevision))
	x.log.Println(fmt.Sprintf("  on %s %s", r.Name, r.ShortToken()))
	for _, w := range x.build.Warnings() {
		x.log.Warn(w)
	}
}

// limit is a stage's time limit from config.toml, or the job's.
func (x *execution) limit(key string, set time.Duration) time.Duration {
	job := x.build.Timeout()
	switch {
	case set == 0:
		return job
	case set < 0:
		x.logger.Warn(key+" must be greater than 0; using the job's timeout", key, set, "timeout", job)
		return job
	case set > job:
		x.logger.Warn(key+" exceeds the job's timeout; using the job's timeout", key, set, "timeout", job)
		return job
	default:
		return set
	}
}

// timeoutOr returns the failure for a stage's own time limit if that is what
// ended ctx, and err otherwise.
func timeoutOr(err error, ctx context.Context, limit error) error {
	if cause := context.Cause(ctx); errors.Is(cause, limit) {
		return &build.Failure{Err: cause, Reason: build.ReasonTimeout}
	}
	return err
}

// watch waits for the caller's signals in the background until the returned
// function is called.
func (x *execution) watch(abort context.CancelFunc) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		canceled := x.opts.Cancel
		for {
			select {
			case <-stop:
				return
			case <-x.opts.Abort:
				abort()
				return
			case <-x.alive.Done():
				abort() // ends pauses; calls end by themselves
				return
			case <-canceled:
				canceled = nil
				x.takeCancel()()
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// onCancel says what a cancel is to do from now on.
func (x *execution) onCancel(f context.CancelFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cancel = f
}

func (x *execution) takeCancel() context.CancelFunc {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cancel
}

// prepare tries up to three times to make the job's environment, and cleans
// up after each failure. A job's own failure is not tried again.
func (x *execution) prepare(ctx context.Context) (a *attempt, err error) {
	err = x.log.Section("prepare_executor", `Preparing the "custom" executor`, func() error {
		for n := 1; n <= prepareRetries; n++ {
			x.countAttempt(n)
			a = &attempt{x: x, number: n}
			err := a.prepare(ctx)
			if err == nil {
				return nil
			}
			a.cleanup()
			var failure *build.Failure
			if errors.As(err, &failure) {
				return err
			}
			if ctx.Err() != nil {
				return x.ended(ctx)
			}
			x.log.Error("Preparation failed: " + err.Error())
			x.log.Info(fmt.Sprintf("Will be retried in %v ...", prepareRetryPause))
			// The real runner also pauses after the last attempt.
			if x.runner.cfg.Pause(ctx, prepareRetryPause) != nil {
				return x.ended(ctx)
			}
			if n == prepareRetries {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (x *execution) countAttempt(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.attempts = n
}

// ended is the failure of a job whose context has ended.
func (x *execution) ended(ctx context.Context) error {
	_, err := status(context.Cause(ctx), x.build.Timeout())
	return err
}

// supervise runs the stages and stops them when the job's time is over or the
// runner shuts down. It then waits a while for them, but not for ever: the
// cleanup must come.
func (x *execution) supervise(ctx, prepareCtx context.Context, a *attempt) error {
	stagesCtx, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan error, 1)
	go func() { finished <- x.stages(stagesCtx, prepareCtx, a) }()

	var err error
	select {
	case err := <-finished:
		if ctx.Err() != nil {
			return x.ended(ctx)
		}
		return err
	case <-ctx.Done():
		err = x.ended(ctx)
	case <-x.opts.Shutdown:
		err = &build.Failure{
			Err:    errors.New("aborted: " + shutdownSignalTitle),
			Reason: build.ReasonInterrupted,
		}
	}
	stop()
	timer := time.NewTimer(buildFinishTimeout)
	defer timer.Stop()
	select {
	case <-finished:
	case <-timer.C:
		x.log.Warn("Timed out waiting for the build to finish")
	}
	return err
}

// record keeps a finished call for the result.
func (x *execution) record(c Call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = append(x.calls, c)
}

// leave notes that a call was left to itself or not made any more.
func (x *execution) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left = true
}

// abandoned reports whether the job was left as it was.
func (x *execution) abandoned() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.left
}
