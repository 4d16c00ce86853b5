package migrate

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Time-outs of the runner that fit the driver's own, in seconds. The runner's
// defaults are an hour, ten minutes for graceful_kill_timeout and 30 s for
// shutdown_timeout (executors/custom/config.go, consts.go).
const (
	configTimeout    = 60
	cleanupTimeout   = 60
	gracefulTimeout  = 60
	shutdownTimeout  = 60
	prepareAllowance = 8 * time.Minute
)

// entry is the text for the runner's entry in its config.toml.
func entry(r inherit.Runner, place, program string) string {
	var b strings.Builder
	b.WriteString("  executor = \"custom\"\n")
	if !r.Has("safe_directory_checkout") {
		b.WriteString("  # The kubernetes executor's own default: git must accept a repository that the\n  # helper has checked out for another user.\n  safe_directory_checkout = true\n")
	}
	const clonePath = "  # The kubernetes executor's own default: jobs may set GIT_CLONE_PATH.\n"
	switch {
	case r.Has("custom_build_dir", "enabled"):
	case r.Has("custom_build_dir"):
		// Older registrations wrote the table, empty. A second one would be no TOML.
		b.WriteString(clonePath + "  # In the table [runners.custom_build_dir] that is there:  enabled = true\n")
	default:
		b.WriteString(clonePath + "  [runners.custom_build_dir]\n    enabled = true\n")
	}
	prepareTimeout := (budget(settings.Defaults().Wait) + prepareAllowance) / time.Second
	b.WriteString("  [runners.custom]\n")
	for _, stage := range []struct {
		name    string
		timeout int
	}{{"config", configTimeout}, {"prepare", int(prepareTimeout)}, {"run", 0}, {"cleanup", cleanupTimeout}} {
		args := []string{stage.name}
		if place != settings.DefaultPath {
			args = append(args, "--config", place)
		}
		fmt.Fprintf(&b, "    %s_exec = %q\n    %s_args = [%s]\n", stage.name, path.Clean(program), stage.name, list(args))
		if stage.timeout > 0 {
			fmt.Fprintf(&b, "    %s_exec_timeout = %d\n", stage.name, stage.timeout)
		}
	}
	fmt.Fprintf(&b, "    # More than run.cancel_grace in the driver's configuration.\n    graceful_kill_timeout = %d\n", gracefulTimeout)
	return b.String()
}

func list(args []string) string {
	var quoted []string
	for _, arg := range args {
		quoted = append(quoted, fmt.Sprintf("%q", arg))
	}
	return strings.Join(quoted, ", ")
}
