// Package script writes the shell scripts that a runner hands to a custom
// executor's run stage. They do what GitLab Runner's scripts do, in the same
// order and by the same means (shells/bash.go, shells/abstract.go), in words
// of our own; they run in bash and in busybox sh.
package script

import (
	"errors"
	"strings"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// The stages of a job as the runner names them. The user's steps are stages
// as well: see StepStage.
const (
	Prepare               = "prepare_script"
	GetSources            = "get_sources"
	ClearWorktree         = "clear_worktree"
	RestoreCache          = "restore_cache"
	DownloadArtifacts     = "download_artifacts"
	AfterScript           = "after_script"
	ArchiveCache          = "archive_cache"
	ArchiveCacheOnFailure = "archive_cache_on_failure"
	UploadOnSuccess       = "upload_artifacts_on_success"
	UploadOnFailure       = "upload_artifacts_on_failure"
	Cleanup               = "cleanup_file_variables"
	StepScript            = "step_script"
	StepScriptForDriver   = "build_script"
)

// ErrNothingToDo means that the stage is not to be called at all.
var ErrNothingToDo = errors.New("the stage has nothing to do")

// StepStage is the stage of the step of that name.
func StepStage(step string) string {
	return "step_" + strings.ToLower(step)
}

// Title is what the job log says above a stage.
func Title(stage string) string {
	switch stage {
	case Prepare:
		return "Preparing environment"
	case GetSources:
		return "Getting source from Git repository"
	case ClearWorktree:
		return "Deleting all tracked and untracked files due to source fetch failure"
	case RestoreCache:
		return "Restoring cache"
	case DownloadArtifacts:
		return "Downloading artifacts"
	case AfterScript:
		return "Running after_script"
	case ArchiveCache:
		return "Saving cache for successful job"
	case ArchiveCacheOnFailure:
		return "Saving cache for failed job"
	case UploadOnSuccess:
		return "Uploading artifacts for successful job"
	case UploadOnFailure:
		return "Uploading artifacts for failed job"
	case Cleanup:
		return "Cleaning up project directory and file based variables"
	default:
		return `Executing "` + stage + `" stage of the job script`
	}
}

// Generate writes the script of a stage of a started build.
func Generate(b *build.Build, stage string) (string, error) {
	w := newWriter(b)
	var err error
	switch stage {
	case Prepare:
		w.prepare()
	case GetSources:
		err = w.getSources()
	case ClearWorktree:
		w.clearWorktree()
	case RestoreCache:
		err = w.restoreCache()
	case DownloadArtifacts:
		err = w.downloadArtifacts()
	case AfterScript:
		err = w.afterScript()
	case ArchiveCache:
		err = w.archiveCache(true)
	case ArchiveCacheOnFailure:
		err = w.archiveCache(false)
	case UploadOnSuccess:
		err = w.uploadArtifacts(true)
	case UploadOnFailure:
		err = w.uploadArtifacts(false)
	case Cleanup:
		w.cleanup()
	default:
		err = w.userStep(stage)
	}
	if err != nil {
		return "", err
	}
	return w.text(), nil
}

// prepare only says where the job runs. config_exec names the host.
func (w *writer) prepare() {
	if host := w.b.Hostname; host != "" {
		w.linef(`echo "Running on $(hostname) via "%s...`, w.quote(host))
	} else {
		w.line(`echo "Running on $(hostname)..."`)
	}
	w.removeFile(w.temp(envFile))
	w.removeFile(w.temp("masking.db"))
}

func (w *writer) userStep(stage string) error {
	s := step(w.b, stage)
	if s == nil {
		return ErrNothingToDo
	}
	w.enter()
	if pre := w.b.Runner.PreBuildScript; pre != "" {
		w.commands(pre)
	}
	commands := s.Script
	if s.Name == "release" {
		// The release step alone is written by GitLab, not by the user, and
		// has its variables filled in (shells/abstract.go, writeUserScript).
		commands = nil
		for _, c := range s.Script {
			commands = append(commands, w.b.Variables().ExpandValue(c))
		}
	}
	w.commands(commands...)
	if post := w.b.Runner.PostBuildScript; post != "" {
		w.commands(post)
	}
	return nil
}

func (w *writer) afterScript() error {
	s := step(w.b, StepStage(job.StepAfterScript))
	if s == nil || len(s.Script) == 0 {
		return ErrNothingToDo
	}
	w.enter()
	w.noticef("Running after script...")
	w.commands(s.Script...)
	return nil
}

func (w *writer) cleanup() {
	w.exports(false)
	w.forgetCredentials()
	for _, name := range []string{envFile, "masking.db", gitConfigFile} {
		w.removeFile(w.temp(name))
	}
	for _, key := range w.fileVariables() {
		w.removeFile(w.temp(key))
	}
	w.cleanGitFolder()
	w.removeFile(w.owner())
}
