package build

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// Values of GIT_STRATEGY.
const (
	GitClone = "clone"
	GitFetch = "fetch"
	GitNone  = "none"
	GitEmpty = "empty"
)

// Names of the variables that say how often a stage may be tried.
const (
	GetSourcesAttempts       = "GET_SOURCES_ATTEMPTS"
	RestoreCacheAttempts     = "RESTORE_CACHE_ATTEMPTS"
	DownloadArtifactAttempts = "ARTIFACT_DOWNLOAD_ATTEMPTS"
)

const maxAttempts = 10

// GitStrategy is how the sources are fetched.
func (b *Build) GitStrategy() string {
	switch s := b.Variables().Value("GIT_STRATEGY"); s {
	case GitClone, GitFetch, GitNone, GitEmpty:
		return s
	}
	if b.Job.AllowGitFetch {
		return GitFetch
	}
	return GitClone
}

// GitCheckout reports whether the working tree is wanted.
func (b *Build) GitCheckout() bool {
	if s := b.GitStrategy(); s == GitNone || s == GitEmpty {
		return false
	}
	on, err := strconv.ParseBool(b.Variables().Value("GIT_CHECKOUT"))
	return err != nil || on
}

// Submodules is "none", "normal" or "recursive".
func (b *Build) Submodules() string {
	s := b.Variables().Value("GIT_SUBMODULE_STRATEGY")
	if !b.fetches() || s != "normal" && s != "recursive" {
		return "none"
	}
	return s
}

func (b *Build) fetches() bool {
	s := b.GitStrategy()
	return s == GitClone || s == GitFetch
}

// Words reads a variable with options for git. "none" means no options; an
// empty variable means the fallback.
func (b *Build) Words(key string, fallback ...string) []string {
	switch raw := b.Variables().Value(key); raw {
	case "":
		return fallback
	case "none":
		return nil
	default:
		return strings.Fields(raw)
	}
}

// Attempts reads how often a stage may be tried: 1 unless key says otherwise,
// never more than 10.
func (b *Build) Attempts(key string) int {
	n, err := strconv.Atoi(b.Variables().Value(key))
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxAttempts)
}

// CacheRequestTimeout is the limit of one cache transfer in minutes.
func (b *Build) CacheRequestTimeout() int {
	n, err := strconv.Atoi(b.Variables().Value("CACHE_REQUEST_TIMEOUT"))
	if err != nil {
		return 10
	}
	return n
}

// IgnoreAfterScriptErrors reports whether after_script may fail unnoticed.
func (b *Build) IgnoreAfterScriptErrors() bool {
	on, err := strconv.ParseBool(b.Variables().Value("AFTER_SCRIPT_IGNORE_ERRORS"))
	return err != nil || on
}

// DebugTrace reports whether the scripts show every command (CI_DEBUG_TRACE).
func (b *Build) DebugTrace() bool {
	return !b.Runner.DebugTraceDisabled && b.Variables().Bool("CI_DEBUG_TRACE")
}

// CleanGitConfig reports whether git's configuration in the project folder is
// removed before and after the job. It is, unless nothing is fetched.
func (b *Build) CleanGitConfig() bool {
	if b.Runner.CleanGitConfig != nil {
		return *b.Runner.CleanGitConfig
	}
	return b.GitStrategy() != GitNone
}

// checkSettings returns what is wrong with the variables read above.
func checkSettings(vars job.Variables) []string {
	var warnings []string
	for _, key := range []string{GetSourcesAttempts, RestoreCacheAttempts, DownloadArtifactAttempts} {
		raw := vars.Value(key)
		n, err := strconv.Atoi(raw)
		switch {
		case raw == "":
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("%s: expected a number, got %q; 1 is used", key, raw))
		case n < 1 || n > maxAttempts:
			warnings = append(warnings, fmt.Sprintf("%s: %d is outside 1 to %d; the nearest is used", key, n, maxAttempts))
		}
	}
	for _, choice := range [][]string{
		{"GIT_STRATEGY", GitClone, GitFetch, GitNone, GitEmpty},
		{"GIT_SUBMODULE_STRATEGY", "none", "normal", "recursive"},
	} {
		key, allowed := choice[0], choice[1:]
		if raw := vars.Value(key); raw != "" && !slices.Contains(allowed, raw) {
			warnings = append(warnings, fmt.Sprintf("%s: %q is none of %s; the default is used", key, raw, strings.Join(allowed, ", ")))
		}
	}
	for _, key := range []string{"GIT_CHECKOUT", "CI_DEBUG_TRACE", "AFTER_SCRIPT_IGNORE_ERRORS"} {
		if raw := vars.Value(key); raw != "" {
			if _, err := strconv.ParseBool(raw); err != nil {
				warnings = append(warnings, fmt.Sprintf("%s: expected true or false, got %q; the default is used", key, raw))
			}
		}
	}
	return warnings
}
