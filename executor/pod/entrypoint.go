package pod

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// entrypoint has the entrypoint of the job's image run, where the job or the
// runner wants it. It gets the keeper as its arguments and has to run them, and
// the container counts as started once it does. An entrypoint that the job
// names itself is of no account with and without the flag, nor is a command, as
// in the kubernetes executor (executors/kubernetes/kubernetes.go,
// getCommandAndArgs). Without the flag the keeper takes its place.
func (b *builder) entrypoint() error {
	build := b.of(job.Build)
	if build == nil || !Flag(b.Variables, FlagEntrypoint) {
		return nil
	}
	build.Args = append(build.Command, b.KeeperMark)
	build.Command = nil
	build.StartupProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: []string{"sh", "-c", `test -s "$1"`, "probe", b.KeeperMark},
		}},
		PeriodSeconds:  1,
		TimeoutSeconds: probeTimeout,
		// How long the Pod may take to start is for the driver to say.
		FailureThreshold: max(1, int32(b.Wait/time.Second)),
	}
	return nil
}

// literally writes a command so that Kubernetes hands it over as it is: in a
// container's command and args it takes $$ for $ and replaces $(NAME).
func literally(command []string) []string {
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "$", "$$")
	}
	return command
}

// probeTimeout is how long a look at the mark may take, in seconds. A busy node
// is slow to start one.
const probeTimeout = 10
