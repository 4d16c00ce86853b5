package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// DefaultRunnerConfig is where GitLab Runner has its configuration when it runs
// as a service of root.
const DefaultRunnerConfig = "/etc/gitlab-runner/config.toml"

// runnerFile is what matters to the driver of the runner's config.toml
// (common/config.go of GitLab Runner).
type runnerFile struct {
	Concurrent      *int          `toml:"concurrent"`
	CheckInterval   int           `toml:"check_interval"` // in seconds
	ShutdownTimeout int           `toml:"shutdown_timeout"`
	Runners         []runnerEntry `toml:"runners"`
}

// runnerEntry is one [[runners]].
type runnerEntry struct {
	Name           string `toml:"name"`
	URL            string `toml:"url"`
	CloneURL       string `toml:"clone_url"`
	Token          string `toml:"token"`
	TLSCAFile      string `toml:"tls-ca-file"`
	Executor       string `toml:"executor"`
	Limit          int    `toml:"limit"`
	BuildsDir      string `toml:"builds_dir"`
	CacheDir       string `toml:"cache_dir"`
	Shell          string `toml:"shell"`
	PrepareTimeout any    `toml:"prepare_timeout"`
	SafeDirectory  *bool  `toml:"safe_directory_checkout"`
	BuildDir       struct {
		Enabled *bool `toml:"enabled"`
	} `toml:"custom_build_dir"`
	FeatureFlags map[string]any `toml:"feature_flags"`

	Custom runnerCustom `toml:"custom"`
}

// runnerCustom is [runners.custom].
type runnerCustom struct {
	ConfigExec  string   `toml:"config_exec"`
	ConfigArgs  []string `toml:"config_args"`
	PrepareExec string   `toml:"prepare_exec"`
	PrepareArgs []string `toml:"prepare_args"`
	RunExec     string   `toml:"run_exec"`
	RunArgs     []string `toml:"run_args"`
	CleanupExec string   `toml:"cleanup_exec"`
	CleanupArgs []string `toml:"cleanup_args"`

	PrepareExecTimeout  *int `toml:"prepare_exec_timeout"`
	CleanupExecTimeout  *int `toml:"cleanup_exec_timeout"`
	GracefulKillTimeout *int `toml:"graceful_kill_timeout"`
	ForceKillTimeout    *int `toml:"force_kill_timeout"`
}

// Defaults of the runner (executors/custom/config.go, executors/custom/consts.go,
// helpers/process/killer.go, common/consts.go).
const (
	defaultExecTimeout     = time.Hour
	defaultGracefulKill    = 10 * time.Minute
	defaultForceKill       = 10 * time.Second
	defaultShutdownTimeout = 30 * time.Second
	defaultConcurrent      = 1
	defaultCheckInterval   = 3 * time.Second
)

// errNotTOML is the error for a config.toml that cannot be read. The library's
// own would quote from the file, which holds tokens.
var errNotTOML = errors.New("it is not valid TOML, or a key has a value of the wrong kind")

// parseRunnerFile reads a config.toml. Keys that are not named above are passed
// over.
func parseRunnerFile(text []byte) (runnerFile, error) {
	var f runnerFile
	err := toml.Unmarshal(text, &f)
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &decode):
		line, column := decode.Position()
		return runnerFile{}, fmt.Errorf("line %d, column %d: %w", line, column, errNotTOML)
	case err != nil:
		return runnerFile{}, errNotTOML
	}
	return f, nil
}

// concurrent is how many jobs the runner runs at once.
func (f runnerFile) concurrent() int {
	if f.Concurrent == nil {
		return defaultConcurrent
	}
	return *f.Concurrent
}

// checkInterval is how often the runner asks GitLab for a job.
func (f runnerFile) checkInterval() time.Duration {
	if f.CheckInterval <= 0 {
		return defaultCheckInterval
	}
	return time.Duration(f.CheckInterval) * time.Second
}

func (f runnerFile) shutdown() time.Duration {
	if f.ShutdownTimeout <= 0 {
		return defaultShutdownTimeout
	}
	return time.Duration(f.ShutdownTimeout) * time.Second
}

// ours are the entries that call the driver; customs are all with the custom
// executor. Short chooses one by its short token, "" all.
func (f runnerFile) ours(short string) (ours, customs []runnerEntry) {
	for _, r := range f.Runners {
		if r.Executor != "custom" || short != "" && r.short() != short {
			continue
		}
		customs = append(customs, r)
		if slices.ContainsFunc(r.stages(), func(s stageProgram) bool { return s.isDriver() }) {
			ours = append(ours, r)
		}
	}
	return ours, customs
}

// title names an entry for people.
func (r runnerEntry) title() string {
	if r.Name == "" {
		return "a runner without a name"
	}
	return fmt.Sprintf("runner %q", r.Name)
}

// short is the part of the token that is no secret.
func (r runnerEntry) short() string { return inherit.ShortToken(r.Token) }

// stageProgram is what the runner calls for a stage.
type stageProgram struct {
	stage, program string
	args           []string
}

func (r runnerEntry) stages() []stageProgram {
	c := r.Custom
	return []stageProgram{
		{"config", c.ConfigExec, c.ConfigArgs},
		{"prepare", c.PrepareExec, c.PrepareArgs},
		{"run", c.RunExec, c.RunArgs},
		{"cleanup", c.CleanupExec, c.CleanupArgs},
	}
}

func (s stageProgram) key() string { return s.stage + "_exec" }

// isDriver is false for a wrapper, whose insides nobody knows.
func (s stageProgram) isDriver() bool {
	return strings.HasPrefix(filepath.Base(s.program), "tenant-executor")
}

// reads is the configuration file of the driver that the arguments lead to.
func (s stageProgram) reads() string {
	for i, arg := range s.args {
		if value, has := strings.CutPrefix(arg, "--config="); has {
			return value
		}
		if arg == "--config" && i+1 < len(s.args) {
			return s.args[i+1]
		}
	}
	return settings.DefaultPath
}

// prepareLimit is how long prepare may take.
func (r runnerEntry) prepareLimit() (limit time.Duration, key string) {
	limit, key = seconds(r.Custom.PrepareExecTimeout, defaultExecTimeout), "prepare_exec_timeout"
	var other time.Duration
	switch value := r.PrepareTimeout.(type) {
	case string:
		other, _ = time.ParseDuration(value)
	case int64:
		other = time.Duration(value) // as TOML writes a time.Duration
	}
	if other > 0 && other < limit {
		return other, "prepare_timeout"
	}
	return limit, key
}

func seconds(value *int, otherwise time.Duration) time.Duration {
	if value == nil || *value <= 0 {
		return otherwise
	}
	return time.Duration(*value) * time.Second
}
