package build

import (
	"fmt"
	"strconv"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// Feature flags that this program acts on.
const (
	FlagLegacyEval     = "FF_USE_LEGACY_BASH_EVAL"
	FlagExitCodeCheck  = "FF_ENABLE_BASH_EXIT_CODE_CHECK"
	FlagPosixEscapes   = "FF_POSIXLY_CORRECT_ESCAPES"
	FlagStageBackoff   = "FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY"
	FlagBundleURIs     = "FF_USE_GIT_BUNDLE_URIS"
	FlagDefaultMasks   = "FF_MASK_ALL_DEFAULT_TOKENS"
	flagTokenlessURLs  = "FF_GIT_URLS_WITHOUT_TOKENS"
	flagNativeClone    = "FF_USE_GIT_NATIVE_CLONE"
	flagProactiveAuth  = "FF_USE_GIT_PROACTIVE_AUTH"
	flagScriptSections = "FF_SCRIPT_SECTIONS"
	flagJobCleanup     = "FF_ENABLE_JOB_CLEANUP"
	flagHashCacheKeys  = "FF_HASH_CACHE_KEYS"
	flagCacheCleanup   = "FF_CLEAN_UP_FAILED_CACHE_EXTRACT"
)

// flag is a feature flag of GitLab Runner 19.4 and its default
// (helpers/featureflags/flags.go).
type flag struct {
	name string
	on   bool
}

func flags() []flag {
	return []flag{
		{"FF_CLEAN_UP_FAILED_CACHE_EXTRACT", false},
		{"FF_CONCRETE", false},
		{"FF_DISABLE_AUTOMATIC_TOKEN_ROTATION", false},
		{"FF_DISABLE_POWERSHELL_STDIN", false},
		{"FF_DISABLE_UMASK_FOR_DOCKER_EXECUTOR", false},
		{"FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR", false},
		{"FF_ENABLE_BASH_EXIT_CODE_CHECK", false},
		{"FF_ENABLE_JOB_CLEANUP", false},
		{"FF_ENABLE_JOB_INPUTS_INTERPOLATION", true},
		{"FF_EXPORT_HIGH_CARDINALITY_METRICS", false},
		{"FF_GIT_URLS_WITHOUT_TOKENS", false},
		{"FF_HASH_CACHE_KEYS", false},
		{"FF_KUBERNETES_HONOR_ENTRYPOINT", false},
		{"FF_LOG_IMAGES_CONFIGURED_FOR_JOB", false},
		{"FF_MASK_ALL_DEFAULT_TOKENS", true},
		{"FF_NETWORK_PER_BUILD", false},
		{"FF_POSIXLY_CORRECT_ESCAPES", false},
		{"FF_PRINT_POD_EVENTS", false},
		{"FF_RESOLVE_FULL_TLS_CHAIN", false},
		{"FF_SCRIPT_SECTIONS", false},
		{"FF_SCRIPT_TO_STEP_MIGRATION", false},
		{"FF_SECRET_RESOLVING_FAILS_IF_MISSING", true},
		{"FF_SUSPENDABLE_ENVIRONMENTS", false},
		{"FF_TEST_FEATURE", false},
		{"FF_TIMESTAMPS", true},
		{"FF_USE_ADAPTIVE_REQUEST_CONCURRENCY", true},
		{"FF_USE_ADVANCED_POD_SPEC_CONFIGURATION", false},
		{"FF_USE_DIRECT_DOWNLOAD", true},
		{"FF_USE_DOCKER_AUTOSCALER_DIAL_STDIO", true},
		{"FF_USE_DUMB_INIT_WITH_KUBERNETES_EXECUTOR", false},
		{"FF_USE_DYNAMIC_TRACE_FORCE_SEND_INTERVAL", false},
		{"FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY", true},
		{"FF_USE_FASTZIP", true},
		{"FF_USE_FLEETING_ACQUIRE_HEARTBEATS", false},
		{"FF_USE_GITALY_CORRELATION_ID", true},
		{"FF_USE_GIT_BUNDLE_URIS", true},
		{"FF_USE_GIT_NATIVE_CLONE", false},
		{"FF_USE_GIT_PROACTIVE_AUTH", false},
		{"FF_USE_INIT_WITH_DOCKER_EXECUTOR", false},
		{"FF_USE_JOB_ROUTER", false},
		{"FF_USE_LEGACY_BASH_EVAL", false},
		{"FF_USE_LEGACY_GCS_CACHE_ADAPTER", false},
		{"FF_USE_LEGACY_KUBERNETES_EXECUTION_STRATEGY", false},
		{"FF_USE_LEGACY_S3_CACHE_ADAPTER", false},
		{"FF_USE_NATIVE_CONTAINER_STOP", false},
		{"FF_USE_PARALLEL_ARTIFACT_TRANSFER", false},
		{"FF_USE_PARALLEL_CACHE_TRANSFER", false},
		{"FF_USE_POD_ACTIVE_DEADLINE_SECONDS", true},
		{"FF_USE_POWERSHELL_PATH_RESOLVER", false},
		{"FF_USE_WINDOWS_JOB_OBJECT", false},
		{"FF_USE_WINDOWS_LEGACY_PROCESS_STRATEGY", false},
		{"FF_WAIT_FOR_POD_TO_BE_REACHABLE", false},
	}
}

// withoutEffect are flags that change GitLab Runner's scripts but not ours.
func withoutEffect() []string {
	return []string{
		flagTokenlessURLs, flagNativeClone, flagProactiveAuth, flagScriptSections,
		flagJobCleanup, flagHashCacheKeys, flagCacheCleanup,
	}
}

// resolveFlags gives every flag its value: config.toml counts before the
// job's variables, these before the default (common/build_settings.go).
func resolveFlags(configured map[string]bool, vars job.Variables) (map[string]bool, []string) {
	resolved := map[string]bool{}
	var warnings []string
	for _, f := range flags() {
		resolved[f.name] = f.on
		if on, ok := configured[f.name]; ok {
			resolved[f.name] = on
			continue
		}
		raw := vars.Get(f.name)
		if raw == "" {
			continue
		}
		on, err := strconv.ParseBool(raw)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: expected true or false, got %q; the default is used", f.name, raw))
			continue
		}
		resolved[f.name] = on
	}
	for _, name := range withoutEffect() {
		if resolved[name] {
			warnings = append(warnings, name+" has no effect on the stage scripts of localrunner")
		}
	}
	return resolved, warnings
}
