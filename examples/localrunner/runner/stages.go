package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/script"
)

// stages calls run_exec for every stage of the job that has something to do
// (common/build.go, executeScript).
func (x *execution) stages(ctx, prepareCtx context.Context, a *attempt) error {
	err, goOn := x.beforeScript(ctx, prepareCtx, a)
	if !goOn {
		return err
	}
	if err == nil {
		err = x.userScripts(ctx, a)
	}
	archive, upload := script.ArchiveCache, script.UploadOnSuccess
	if err != nil {
		archive, upload = script.ArchiveCacheOnFailure, script.UploadOnFailure
	}
	// The script's error counts before the cache's, this before the upload's.
	for _, stage := range []string{archive, upload} {
		if later := x.stage(ctx, a, stage); err == nil {
			err = later
		}
	}
	if e := x.stage(ctx, a, script.Cleanup); e != nil {
		x.logger.Warn("Error while executing file based variables removal script", "error", e.Error())
	}
	return err
}

// beforeScript runs the stages up to the user's script. goOn is false when
// not even the final stages are to be run.
func (x *execution) beforeScript(ctx, prepareCtx context.Context, a *attempt) (err error, goOn bool) {
	if err := x.stage(prepareCtx, a, script.Prepare); err != nil {
		err = fmt.Errorf("prepare environment: %w. Check "+
			"https://docs.gitlab.com/runner/shells/#shell-profile-loading for more information", err)
		return timeoutOr(err, prepareCtx, errPrepareTimeout), false
	}
	limit := x.limit("get_sources_timeout", time.Duration(x.build.Runner.GetSourcesTimeout))
	sourcesCtx, done := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w: exceeded timeout of %s", errGetSourcesTimeout, limit))
	defer done()
	err = x.retried(sourcesCtx, a, script.GetSources, build.GetSourcesAttempts)
	if err != nil && errors.Is(context.Cause(sourcesCtx), errGetSourcesTimeout) {
		return timeoutOr(err, sourcesCtx, errGetSourcesTimeout), false
	}
	if err == nil {
		err = x.retried(ctx, a, script.RestoreCache, build.RestoreCacheAttempts)
	}
	if err == nil {
		err = x.retried(ctx, a, script.DownloadArtifacts, build.DownloadArtifactAttempts)
	}
	return err, true
}

// userScripts runs the job's steps and then after_script. A cancel during the
// steps stops only them.
func (x *execution) userScripts(ctx context.Context, a *attempt) error {
	scriptCtx, stop := x.withLimit(ctx, "RUNNER_SCRIPT_TIMEOUT", 0)
	defer stop()
	x.onCancel(stop)

	var err error
	for _, s := range x.build.Job.Steps {
		if s.Name == job.StepAfterScript {
			continue
		}
		if err = x.stage(scriptCtx, a, script.StepStage(s.Name)); err != nil {
			break
		}
	}
	switch {
	case ctx.Err() == nil && errors.Is(scriptCtx.Err(), context.Canceled):
		err = &build.Failure{Err: errCanceled, Reason: build.ReasonCanceled}
		x.log.Warn("script canceled externally (UI, API)")
	case !errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(scriptCtx.Err(), context.DeadlineExceeded):
		err = &build.Failure{
			Err:    fmt.Errorf("%w: %w", errScriptTimeout, scriptCtx.Err()),
			Reason: build.ReasonTimeout,
		}
	}
	return x.afterScript(ctx, a, err)
}

// afterScript runs after_script, however the steps ended, and returns the
// error of the whole.
func (x *execution) afterScript(ctx context.Context, a *attempt, err error) error {
	afterCtx, stop := x.withLimit(ctx, "RUNNER_AFTER_SCRIPT_TIMEOUT", afterScriptTimeout)
	defer stop()
	state, _ := status(err, x.build.Timeout())
	x.build.SetStatus(state)
	failed := x.stage(afterCtx, a, script.AfterScript)
	switch {
	case failed == nil, errors.Is(ctx.Err(), context.DeadlineExceeded):
	case x.build.IgnoreAfterScriptErrors():
		x.log.Warn("after_script failed, but job will continue unaffected: " + failed.Error())
	case err == nil:
		err = failed
	}
	return err
}

// withLimit derives a context with the time limit in a variable of the job,
// or the fallback; 0 means none.
func (x *execution) withLimit(ctx context.Context, key string, fallback time.Duration) (context.Context, context.CancelFunc) {
	limit := fallback
	if raw := x.build.Variables().Value(key); raw != "" {
		set, err := time.ParseDuration(raw)
		deadline, bounded := ctx.Deadline()
		switch {
		case err != nil:
			x.log.Warn(fmt.Sprintf("Ignoring malformed %s timeout: %s", key, raw))
		case set < 0:
			x.log.Warn(fmt.Sprintf("Ignoring relative %s timeout: %s", key, raw))
		case bounded && set > deadline.Sub(x.runner.cfg.Now()):
			x.log.Warn(fmt.Sprintf("%s timeout: %s is longer than job timeout. Setting to job timeout", key, raw))
		case set > 0:
			limit = set
		}
	}
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// retried runs a stage as often as a variable allows, with growing pauses.
// Before the second try of get_sources the working tree is cleared.
func (x *execution) retried(ctx context.Context, a *attempt, stage, variable string) error {
	attempts := x.build.Attempts(variable)
	wait, longest := plainRetryPauseMin, plainRetryPauseMax
	if x.build.Flag(build.FlagStageBackoff) {
		wait, longest = stageRetryPauseMin, stageRetryPauseMax
	}
	for n := 0; ; n++ {
		err := x.tryOnce(ctx, a, stage, n)
		if err == nil || n+1 >= attempts {
			return err
		}
		x.log.Warn("Retrying...")
		if pauseErr := x.runner.cfg.Pause(ctx, wait); pauseErr != nil {
			return err
		}
		wait = min(2*wait, longest)
	}
}

func (x *execution) tryOnce(ctx context.Context, a *attempt, stage string, n int) error {
	if stage == script.GetSources && n == 1 {
		if err := x.stage(ctx, a, script.ClearWorktree); err != nil {
			return err
		}
	}
	return x.stage(ctx, a, stage)
}

// stage calls run_exec for one stage, unless the stage has nothing to do or
// its time is over already.
func (x *execution) stage(ctx context.Context, a *attempt, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer x.warnTimeout(ctx, name)
	text, err := script.Generate(x.build, name)
	if errors.Is(err, script.ErrNothingToDo) {
		return nil
	}
	if err != nil {
		return err
	}
	return x.log.Section(name, script.Title(name), func() error {
		return a.run(ctx, name, text)
	})
}

func (x *execution) warnTimeout(ctx context.Context, stage string) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		x.log.Warn(stage + " could not run to completion because the timeout was exceeded. " +
			"For more control over job and script timeouts see: " +
			"https://docs.gitlab.com/ci/runners/configure_runners/#set-script-and-after_script-timeouts")
	}
}
