package script

import (
	"strconv"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// Limits of an upload (common/consts.go).
const (
	uploadTimeout         = time.Hour
	responseHeaderTimeout = 10 * time.Minute
)

func (w *writer) downloadArtifacts() error {
	var from []job.Dependency
	for _, d := range w.b.Job.Dependencies {
		if d.ArtifactsFile.Filename != "" {
			from = append(from, d)
		}
	}
	if len(from) == 0 {
		return ErrNothingToDo
	}
	w.enter()
	w.withHelper("Artifacts downloading", func() {
		for _, d := range from {
			w.noticef("Downloading artifacts for %s (%d)...", d.Name, d.ID)
			w.run(helper, "artifacts-downloader",
				"--url", w.b.Runner.URL, "--token", d.Token, "--id", strconv.FormatInt(d.ID, 10))
		}
	})
	w.giveAway(w.b.CacheDir(), w.b.BuildsDir())
	return nil
}

func (w *writer) uploadArtifacts(success bool) error {
	if w.b.Runner.URL == "" {
		return ErrNothingToDo
	}
	w.enter()
	due := false
	for _, a := range w.b.Job.Artifacts {
		if !job.Applies(a.When, success) || len(a.Paths) == 0 && !a.Untracked {
			continue
		}
		due = true
		w.withHelper("Uploading artifacts", func() {
			w.noticef("Uploading artifacts...")
			w.run(w.uploader(a)...)
		})
	}
	if !due {
		return ErrNothingToDo
	}
	return nil
}

func (w *writer) uploader(a job.Artifact) []string {
	args := []string{
		helper, "artifacts-uploader",
		"--url", w.b.Runner.URL,
		"--token", w.b.Job.Token,
		"--id", strconv.FormatInt(w.b.Job.ID, 10),
		"--timeout", w.b.Runner.Artifact.UploadTimeout.Or(uploadTimeout).String(),
		"--response-header-timeout", w.b.Runner.Artifact.ResponseHeaderTimeout.Or(responseHeaderTimeout).String(),
	}
	for _, p := range a.Paths {
		args = append(args, "--path", p)
	}
	for _, p := range a.Exclude {
		args = append(args, "--exclude", p)
	}
	if a.Untracked {
		args = append(args, "--untracked")
	}
	for _, option := range [][2]string{
		{"--name", a.Name},
		{"--expire-in", a.ExpireIn},
		{"--artifact-format", a.Format},
		{"--artifact-type", a.Type},
	} {
		if option[1] != "" {
			args = append(args, option[0], option[1])
		}
	}
	return args
}
