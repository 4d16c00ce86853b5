package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// readableByAll is the mode bit by which every user of the host reads a file.
const readableByAll = 0o004

// judgeRunnerFile judges the runner's config.toml. Named is whether somebody has
// asked for this very file.
func judgeRunnerFile(path string, named bool, info fs.FileInfo, err error) Result {
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return skip("%s is not there; name the runner's config.toml with --runner-config", path)
	case errors.Is(err, fs.ErrPermission) && !named:
		return skip("%s cannot be read by this user; run doctor as root or as the runner's user", path)
	case err != nil:
		return failed(fmt.Sprintf("%s cannot be read: %v", path, reason(err)), "name the runner's config.toml with --runner-config")
	}
	if mode := info.Mode().Perm(); mode&readableByAll != 0 {
		return warning(fmt.Sprintf("%s has mode %04o, and it holds the runner's token", path, mode), "chmod 600 "+path)
	}
	return ok("%s, mode %04o", path, info.Mode().Perm())
}

func judgeRunnerEntry(ours, customs []runnerEntry, short string) Result {
	switch {
	case len(ours) > 0:
		var titles []string
		for _, r := range ours {
			titles = append(titles, r.title())
		}
		return ok("%s", strings.Join(titles, ", "))
	case len(customs) > 0:
		return failed("no [[runners]] with executor = \"custom\" calls a program named tenant-executor; a wrapper of another name cannot be looked into",
			"set config_exec, prepare_exec, run_exec and cleanup_exec as in examples/runner-config.toml")
	case short != "":
		return failed(fmt.Sprintf("no [[runners]] with executor = \"custom\" has the short token %s", short), "correct --runner, or leave it out")
	}
	return failed("no [[runners]] has executor = \"custom\"", "set it, with [runners.custom] as in examples/runner-config.toml")
}

// judgeRunnerPrograms judges what an entry calls. Missing says why a program
// cannot be run, nil if it can; config is the file that doctor looks at.
func judgeRunnerPrograms(r runnerEntry, missing func(program string) error, config string) []Result {
	var all []Result
	others := map[string][]string{} // stages, by the configuration that they read
	for _, s := range r.stages() {
		arguments := fmt.Sprintf("set %s and %s_args = [%q] as in examples/runner-config.toml", s.key(), s.stage, s.stage)
		switch {
		case s.program == "" && s.stage == "config" && r.BuildsDir != "":
			all = append(all, warning(r.title()+" has no config_exec: the runner takes builds_dir from its own file, and the driver is not told of it", arguments))
		case s.program == "":
			all = append(all, failed(fmt.Sprintf("%s has no %s%s", r.title(), s.key(), without(s.stage)), arguments))
		case missing(s.program) != nil:
			all = append(all, failed(fmt.Sprintf("%s: %s %s: %v", r.title(), s.key(), s.program, missing(s.program)), "install the driver there, or correct "+s.key()))
		case !s.isDriver():
			all = append(all, warning(fmt.Sprintf("%s: %s is %s, which is not looked into", r.title(), s.key(), s.program), "see to it that it calls tenant-executor "+s.stage))
		case !slices.Contains(s.args, s.stage):
			all = append(all, failed(fmt.Sprintf("%s: %s_args are %q, without %q", r.title(), s.stage, s.args, s.stage), arguments))
		case s.reads() != config:
			others[s.reads()] = append(others[s.reads()], s.stage)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(others)) {
		all = append(all, warning(fmt.Sprintf("%s: the configuration of %s is %s, and doctor looks at %s", r.title(), strings.Join(others[file], ", "), file, config), "name the same file with --config, here and there"))
	}
	if len(all) == 0 {
		all = append(all, ok("%s: config, prepare, run and cleanup", r.title()))
	}
	return all
}

// without is what is lost without a stage.
func without(stage string) string {
	return map[string]string{
		"config":  ", and so no builds_dir: every job fails",
		"prepare": ", so that no Pod is made",
		"run":     ": every job fails",
		"cleanup": ", so that Pods and their nodes stay until they expire",
	}[stage]
}

func judgeRunnerJobs(f runnerFile, ours []runnerEntry, ceiling int) []Result {
	jobs := 0
	for _, r := range ours {
		if r.Limit <= 0 {
			jobs = f.concurrent()
			break
		}
		jobs += r.Limit
	}
	jobs = min(jobs, f.concurrent())
	text := fmt.Sprintf("up to %s at once (concurrent, limit), up to %s (tenant.ceiling)", joblog.Count(jobs, "job"), joblog.Count(ceiling, "node"))
	switch {
	case jobs > ceiling:
		return []Result{warning(text+": the rest wait in prepare and use up wait.node", fmt.Sprintf("set concurrent, or limit of the runner, to %d", ceiling))}
	case jobs == 1 && ceiling > 1:
		// The runner's default; nobody sees that the other nodes are never used.
		return []Result{warning(text+": jobs run one after the other, and a second node is never used", fmt.Sprintf("set concurrent, and limit of the runner, to %d, or tenant.ceiling to 1", ceiling))}
	case jobs < ceiling:
		return []Result{ok("%s; with more concurrent more nodes are used", text)}
	}
	return []Result{ok("%s", text)}
}

// judgeRunnerHold judges whether nodes are still there when the next job of a
// queue comes: the runner takes one no sooner than by its next question.
func judgeRunnerHold(f runnerFile, hold time.Duration) Result {
	asks := f.checkInterval()
	text := fmt.Sprintf("nodes go %s after the last Pod (tenant.hold), and the runner asks for jobs every %s (check_interval)", hold, asks)
	if hold <= asks {
		return warning(text+": each job pays the boot of a node", fmt.Sprintf("have the gateway hold its nodes for longer than %s, and set tenant.hold likewise", asks))
	}
	return ok("%s", text)
}

func judgeRunnerPrepare(r runnerEntry, w settings.Wait) Result {
	limit, key := r.prepareLimit()
	sum := w.Node.Value() + w.Start.Value() + w.Reach.Value() + w.Services.Value()
	text := fmt.Sprintf("%s: %s is %s, and the waits of prepare (wait.*) are %s together", r.title(), key, limit, sum)
	if limit <= sum {
		return warning(text+": the runner ends prepare before the driver says why it waits", fmt.Sprintf("set %s above %d seconds, or lower the waits", key, int(sum/time.Second)))
	}
	return ok("%s", text)
}

func judgeRunnerCancel(r runnerEntry, run settings.Run) Result {
	graceful := seconds(r.Custom.GracefulKillTimeout, defaultGracefulKill)
	force := seconds(r.Custom.ForceKillTimeout, defaultForceKill)
	grace := run.CancelGrace.Value()
	text := fmt.Sprintf("%s: graceful_kill_timeout is %s (force_kill_timeout %s), run.cancel_grace is %s", r.title(), graceful, force, grace)
	if graceful <= grace {
		return warning(text+": the runner kills the driver before the processes of a cancelled job are ended",
			fmt.Sprintf("set graceful_kill_timeout above %d, or lower run.cancel_grace", int(grace/time.Second)))
	}
	return ok("%s", text)
}

func judgeRunnerCleanup(f runnerFile, r runnerEntry, c settings.Cleanup) Result {
	limit := seconds(r.Custom.CleanupExecTimeout, defaultExecTimeout)
	timeout := c.Timeout.Value()
	text := fmt.Sprintf("%s: cleanup.timeout is %s, cleanup_exec_timeout %s, shutdown_timeout %s", r.title(), timeout, limit, f.shutdown())
	switch {
	case limit <= timeout:
		return warning(text+": the runner ends cleanup before the driver has noted what is left to do", fmt.Sprintf("set cleanup_exec_timeout above %d", int(timeout/time.Second)))
	case f.shutdown() <= timeout:
		return warning(text+": a runner that shuts down does not wait for cleanup", fmt.Sprintf("set shutdown_timeout above %d", int(timeout/time.Second)))
	}
	return ok("%s", text)
}

func judgeRunnerCheckout(r runnerEntry) []Result {
	var all []Result
	if r.SafeDirectory == nil || !*r.SafeDirectory {
		all = append(all, warning(r.title()+" has no safe_directory_checkout: git refuses the repository (\"dubious ownership\") in images of another user", "set safe_directory_checkout = true in its [[runners]]"))
	}
	if r.BuildDir.Enabled == nil || !*r.BuildDir.Enabled {
		all = append(all, warning(r.title()+" has no custom_build_dir: jobs with GIT_CLONE_PATH fail", "set enabled = true in [runners.custom_build_dir]"))
	}
	if len(all) == 0 {
		all = append(all, ok("%s: safe_directory_checkout and custom_build_dir, as the kubernetes executor has them", r.title()))
	}
	return all
}

func judgeRunnerURL(r runnerEntry) Result {
	for _, address := range []struct{ key, url string }{{"url", r.URL}, {"clone_url", r.CloneURL}} {
		name := host(address.url)
		switch {
		case address.url == "" && address.key == "clone_url":
		case name == "":
			return failed(fmt.Sprintf("%s: %s is not an address", r.title(), address.key), "set it to GitLab's address, such as https://gitlab.example.com")
		case loopback(name):
			return failed(fmt.Sprintf("%s: %s is at %s, which in a Pod is the Pod itself: sources, artifacts and caches do not get through", r.title(), address.key, name),
				"set it to an address of GitLab that Pods reach")
		}
	}
	return ok("%s: %s; doctor --probe tells whether Pods reach it", r.title(), host(r.URL))
}

func loopback(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && (address.IsLoopback() || address.IsUnspecified())
}
