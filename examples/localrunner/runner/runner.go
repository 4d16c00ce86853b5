// Package runner takes one job through a custom executor's driver the way
// GitLab Runner 19.4 does: the calls, their order, their surroundings, the
// meaning of their exit codes, and what happens on failures, cancels and time
// limits. References in comments are to GitLab Runner's source.
package runner

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/joblog"
)

// Time limits of GitLab Runner (common/consts.go).
const (
	prepareRetries      = 3
	prepareRetryPause   = 3 * time.Second
	stageRetryPauseMin  = 5 * time.Second
	stageRetryPauseMax  = 5 * time.Minute
	afterScriptTimeout  = 5 * time.Minute
	buildFinishTimeout  = 5 * time.Minute
	shutdownTimeout     = 30 * time.Second
	plainRetryPauseMin  = time.Second
	plainRetryPauseMax  = 5 * time.Second
	shutdownSignalTitle = "terminated"
)

// ErrShutdown is returned by Run when the runner was told to shut down and
// the job did not end in time. As when a real runner exits, the job's driver
// process runs on, its pipes are broken, its temporary folder stays, and
// nothing more is called.
var ErrShutdown = errors.New("shutdown timed out: the job was left as it was")

// Config of a Runner. Only Runner is required.
type Config struct {
	// Runner is the section of config.toml. Its URL must be the address at
	// which jobs reach the server that the artifacts go to.
	Runner *config.Runner
	// Environ is the environment of the runner's own process, which every
	// driver call inherits.
	Environ []string
	// TempDir is where the temporary folders go; empty means the system's.
	TempDir string
	// KeepTemp leaves the temporary folders behind.
	KeepTemp bool
	// Timestamps puts the time before each line of the job log.
	Timestamps bool
	// ShutdownTimeout is how long a job may take to end after Options.Shutdown;
	// 0 means 30 seconds.
	ShutdownTimeout time.Duration
	// Logger is the runner's own log; nil discards it.
	Logger *slog.Logger
	// Pause waits between attempts, and returns early with an error when ctx
	// ends; nil really waits.
	Pause func(ctx context.Context, d time.Duration) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// CacheURL returns the address in an object store of a cache key; nil
	// keeps caches in the cache folder alone.
	CacheURL func(key string) string
}

// Options of one job.
type Options struct {
	// Log receives the job log with GitLab's section marks; nil discards it.
	Log io.Writer
	// OnLine is called with each line of the job log as it is written.
	OnLine func(line string)
	// OnCall is called when a driver process has started.
	OnCall func(Call)
	// Cancel, once closed, is a press on "Cancel" in GitLab: the script is
	// stopped, after_script and the later stages still run.
	Cancel <-chan struct{}
	// Abort, once closed, is a forced cancel, or a job that GitLab no longer
	// knows: the running stage is stopped and only cleanup follows. The end
	// of Run's context is the same.
	Abort <-chan struct{}
	// Shutdown, once closed, is a SIGTERM to the runner: like Abort, but the
	// runner itself ends after Config.ShutdownTimeout.
	Shutdown <-chan struct{}
	// ConcurrentID is CI_CONCURRENT_ID: different for jobs at the same time.
	ConcurrentID int
}

// Runner runs jobs. It may run several at once.
type Runner struct {
	cfg Config
}

// New returns a runner.
func New(cfg Config) (*Runner, error) {
	if cfg.Runner == nil {
		return nil, errors.New("no runner configuration is given")
	}
	if cfg.ShutdownTimeout <= 0 {
		cfg.ShutdownTimeout = shutdownTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Pause == nil {
		cfg.Pause = pause
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Runner{cfg: cfg}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run takes a job from its first driver call to its last. A job that fails is
// no error: see Result. The error is ErrShutdown, or says that the job log
// could not be written.
func (r *Runner) Run(ctx context.Context, j *job.Job, opts Options) (Result, error) {
	own := *j // names of images are expanded in place
	own.Services = slices.Clone(j.Services)
	b := build.New(r.cfg.Runner, &own, opts.ConcurrentID)
	b.CacheURL = r.cfg.CacheURL

	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	x := &execution{
		runner: r, build: b, opts: opts, alive: alive,
		log:    joblog.New(output(opts), r.logOptions(b)),
		logger: r.cfg.Logger.With("job", j.ID),
	}
	ended := make(chan Result, 1)
	go func() { ended <- x.run(ctx) }()

	var expired <-chan time.Time
	shutdown := opts.Shutdown
	for {
		select {
		case res := <-ended:
			return res, x.log.Err()
		case <-shutdown:
			shutdown = nil
			timer := time.NewTimer(r.cfg.ShutdownTimeout)
			defer timer.Stop()
			expired = timer.C
		case <-expired:
			stop()
			res := <-ended
			if x.abandoned() {
				return res, ErrShutdown
			}
			return res, x.log.Err()
		}
	}
}

func output(opts Options) io.Writer {
	to := opts.Log
	if to == nil {
		to = io.Discard
	}
	if opts.OnLine == nil {
		return to
	}
	return io.MultiWriter(to, &joblog.Lines{F: opts.OnLine})
}

func (r *Runner) logOptions(b *build.Build) joblog.Options {
	prefixes := append([]string{"glpat-"}, b.Job.Features.TokenMaskPrefixes...)
	if b.Flag(build.FlagDefaultMasks) {
		prefixes = append(prefixes, joblog.DefaultTokenPrefixes()...)
	}
	return joblog.Options{
		Phrases:       b.Variables().Masked(),
		TokenPrefixes: prefixes,
		Limit:         int64(r.cfg.Runner.OutputLimit) * 1024,
		Timestamps:    r.cfg.Timestamps,
		Now:           r.cfg.Now,
	}
}
