// Package config reads the parts of GitLab Runner's config.toml that decide
// what a custom executor's driver sees.
package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/keys"
)

// Executor is the value of `executor` that this program can run.
const Executor = "custom"

// Runner is one [[runners]] section.
type Runner struct {
	Name     string `toml:"name"`
	URL      string `toml:"url"`
	Token    string `toml:"token"`
	Executor string `toml:"executor"`

	BuildsDir   string   `toml:"builds_dir"`
	CacheDir    string   `toml:"cache_dir"`
	CloneURL    string   `toml:"clone_url"`
	Shell       string   `toml:"shell"`
	Environment []string `toml:"environment"`
	// OutputLimit is the largest job log in KiB; 0 means 4096.
	OutputLimit int `toml:"output_limit"`

	PreGetSourcesScript  string `toml:"pre_get_sources_script"`
	PostGetSourcesScript string `toml:"post_get_sources_script"`
	PreBuildScript       string `toml:"pre_build_script"`
	PostBuildScript      string `toml:"post_build_script"`

	PrepareTimeout     Duration `toml:"prepare_timeout"`
	GetSourcesTimeout  Duration `toml:"get_sources_timeout"`
	DebugTraceDisabled bool     `toml:"debug_trace_disabled"`

	SafeDirectoryCheckout bool  `toml:"safe_directory_checkout"`
	CleanGitConfig        *bool `toml:"clean_git_config"`

	CustomBuildDir CustomBuildDir  `toml:"custom_build_dir"`
	FeatureFlags   map[string]bool `toml:"feature_flags"`
	Artifact       Artifact        `toml:"artifact"`
	Cache          map[string]any  `toml:"cache"`
	Custom         *Custom         `toml:"custom"`
}

// CustomBuildDir is [runners.custom_build_dir].
type CustomBuildDir struct {
	Enabled bool `toml:"enabled"`
}

// Artifact is [runners.artifact].
type Artifact struct {
	UploadTimeout         Duration `toml:"upload_timeout"`
	ResponseHeaderTimeout Duration `toml:"response_header_timeout"`
}

// Custom is [runners.custom]. The time limits are in seconds; a limit that is
// missing or not above 0 takes its default where GitLab Runner does the same
// (executors/custom/config.go).
type Custom struct {
	ConfigExec          string   `toml:"config_exec"`
	ConfigArgs          []string `toml:"config_args"`
	ConfigExecTimeout   *int     `toml:"config_exec_timeout"`
	PrepareExec         string   `toml:"prepare_exec"`
	PrepareArgs         []string `toml:"prepare_args"`
	PrepareExecTimeout  *int     `toml:"prepare_exec_timeout"`
	RunExec             string   `toml:"run_exec"`
	RunArgs             []string `toml:"run_args"`
	CleanupExec         string   `toml:"cleanup_exec"`
	CleanupArgs         []string `toml:"cleanup_args"`
	CleanupExecTimeout  *int     `toml:"cleanup_exec_timeout"`
	GracefulKillTimeout *int     `toml:"graceful_kill_timeout"`
	ForceKillTimeout    *int     `toml:"force_kill_timeout"`
}

// Defaults of [runners.custom] (executors/custom/consts.go,
// helpers/process/killer.go).
const (
	DefaultExecTimeout         = time.Hour
	DefaultGracefulKillTimeout = 10 * time.Minute
	DefaultForceKillTimeout    = 10 * time.Second
)

// Seconds turns a limit of [runners.custom] into a duration.
func Seconds(limit *int, fallback time.Duration) time.Duration {
	if limit == nil || *limit <= 0 {
		return fallback
	}
	return time.Duration(*limit) * time.Second
}

// Duration is a length of time written as "30s" or "1h30m".
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"30s\" or \"1h30m\"", text)
	}
	*d = Duration(v)
	return nil
}

// Or returns the duration, or fallback when it is not above 0.
func (d Duration) Or(fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return time.Duration(d)
}

// Load reads the config.toml at path and returns the section of the runner
// called name, or the first one with executor = "custom" when name is empty.
func Load(path, name string) (*Runner, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the runner's configuration: %w", err)
	}
	r, err := parse(data, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func parse(data []byte, name string) (*Runner, error) {
	var file struct {
		Runners []*Runner `toml:"runners"`
	}
	if err := decode(data, &file); err != nil {
		return nil, err
	}
	if len(file.Runners) == 0 {
		return nil, errors.New("no [[runners]] section")
	}
	index, err := choose(file.Runners, name)
	if err != nil {
		return nil, err
	}
	if err := checkCustomKeys(data, index); err != nil {
		return nil, err
	}
	return file.Runners[index], nil
}

// decode puts the line and column into the message of a syntax error.
func decode(data []byte, into any) error {
	err := toml.Unmarshal(data, into)
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		line, column := syntax.Position()
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

func choose(runners []*Runner, name string) (int, error) {
	var names []string
	for i, r := range runners {
		if name == "" && r.Executor == Executor {
			return i, nil
		}
		if name != "" && r.Name == name {
			if r.Executor != Executor {
				return 0, fmt.Errorf("runner %q has executor %q; only %q can be run here", name, r.Executor, Executor)
			}
			return i, nil
		}
		names = append(names, r.Name)
	}
	if name == "" {
		return 0, fmt.Errorf("no [[runners]] section has executor = %q", Executor)
	}
	return 0, fmt.Errorf("no runner is called %q%s", name, keys.Hint(name, names))
}

// checkCustomKeys refuses unknown keys in [runners.custom]. The rest of the
// file belongs to GitLab Runner, which has many more keys than matter here.
func checkCustomKeys(data []byte, index int) error {
	var file struct {
		Runners []struct {
			Custom map[string]any `toml:"custom"`
		} `toml:"runners"`
	}
	if err := decode(data, &file); err != nil {
		return err
	}
	known := []string{
		"config_exec", "config_args", "config_exec_timeout",
		"prepare_exec", "prepare_args", "prepare_exec_timeout",
		"run_exec", "run_args",
		"cleanup_exec", "cleanup_args", "cleanup_exec_timeout",
		"graceful_kill_timeout", "force_kill_timeout",
	}
	for _, key := range slices.Sorted(maps.Keys(file.Runners[index].Custom)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("[runners.custom] has no key %q%s", key, keys.Hint(key, known))
		}
	}
	return nil
}

// ShortToken is what GitLab Runner shows of the runner's token
// (helpers/shorten_token.go): nine characters after the known prefixes, with
// a letter or digit at both ends.
func (r *Runner) ShortToken() string {
	short := trimTokenPrefix(r.Token)
	short = short[:min(9, len(short))]
	if short == "" {
		return ""
	}
	if !alphanumeric(short[0]) {
		short = "r" + short[:len(short)-1]
	}
	if last := len(short) - 1; !alphanumeric(short[last]) {
		short = short[:last] + "r"
	}
	return short
}

func trimTokenPrefix(token string) string {
	switch {
	case strings.HasPrefix(token, "glrtr-"):
		return token[len("glrtr-"):]
	case strings.HasPrefix(token, "glrt-"):
		token = token[len("glrt-"):]
	case strings.HasPrefix(token, "glcbt-"):
		return token[len("glcbt-"):]
	}
	// A partition prefix: t1_, t2_ or t3_.
	if len(token) >= 3 && token[0] == 't' && token[1] >= '1' && token[1] <= '3' && token[2] == '_' {
		return token[3:]
	}
	return token
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
