package stages

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// uidFile is the file in the folder of the builds to whose owner the runner's
// scripts give all that the helper has made, where it exists
// (shells/abstract.go:965-999).
const uidFile = ".gitlab-build-uid-gid"

// tellUser has the user of the build container make that file, with the job's
// flag for it. The kubernetes executor has an init container of the same image
// for it (executors/kubernetes/kubernetes.go, buildUiGidCollector); a command in
// the container itself is the very user that stages will have.
func (d *Driver) tellUser(ctx context.Context, ref pods.Ref) error {
	if !pod.Flag(d.variables, pod.FlagNoUmask) {
		return nil
	}
	file := path.Join(d.settings.Job.BuildsDir, uidFile)
	var code int
	var said bounded.Buffer
	// Making the file twice is making it once.
	err := d.cluster.RetryIf(ctx, d.settings.Wait.Reach.Value(), stream.MayRepeat, func(ctx context.Context) (err error) {
		said.Reset()
		code, err = d.runner.Run(ctx, stream.Command{
			Namespace: ref.Namespace, Pod: ref.Name, Container: string(job.Build),
			Args: []string{"sh", "-c", `: >"$1"`, "sh", file}, Stdout: &said, Stderr: &said,
		})
		return err
	})
	var long *bounded.TooLongError
	switch {
	case errors.As(err, &long):
		return failure.Wrap(failure.ImageUnusable, err, "%s is on, and what sh in the build container answers is no shell's", pod.FlagNoUmask)
	case err != nil:
		return d.execFailure(ctx, ref, err)
	case code != 0:
		return failure.New(failure.BuildsFolder, "%s is on, and the build container cannot make %s: %s", pod.FlagNoUmask, file, strings.TrimSpace(said.String()))
	}
	return nil
}
