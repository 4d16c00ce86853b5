package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Roles says what a Pod's containers are to whoever looks at it.
type Roles struct {
	// Needed have to run; the others may end by themselves. Without any name all
	// are needed.
	Needed []string
	// Made are the containers that whoever asks has put into the Pod, nil for all
	// of them. Others are foreign: a webhook has added them, for one. What they do
	// is left to the kubelet, which starts them again as they ask for.
	Made []string
}

// foreign reports whether somebody else has added the container.
func (r Roles) foreign(container string) bool {
	return r.Made != nil && !slices.Contains(r.Made, container)
}

// dispensable reports whether the Pod goes on without the container, now that it
// has run: init containers have to end well, and others may be needed.
func (r Roles) dispensable(p Problem) bool {
	return !p.Init && len(r.Needed) > 0 && !slices.Contains(r.Needed, p.Container) && (p.Ended || p.Ran)
}

// hinders reports whether the kubelet is done with a container that keeps the Pod
// from running. It is slower to say so of the Pod than of its container; of a
// foreign one nobody else can tell whether it starts again.
func (p Problem) hinders() bool {
	switch p.Kind {
	case NotStartable, ImagePlatform, OutOfMemory, Exited:
		return !p.Foreign
	}
	return false
}

// culprit is the container for which the kubelet has given the Pod up, nil if no
// container is known to be the reason.
func (s State) culprit() *Problem {
	for i, p := range s.Problems {
		if p.Kind == OutOfMemory || p.Kind == Exited || p.Foreign && p.Ended {
			return &s.Problems[i]
		}
	}
	return nil
}

// Foreigner is the first problem of a container that somebody else has added, nil
// if there is none.
func (s State) Foreigner() *Problem {
	for i := range s.Problems {
		if s.Problems[i].Foreign {
			return &s.Problems[i]
		}
	}
	return nil
}

// initProblem marks the problem of an init container.
func initProblem(all []Problem) []Problem {
	for i := range all {
		all[i].Init = true
	}
	return all
}

// hasRun reports whether a container that waits has run before.
func hasRun(c corev1.ContainerStatus) bool { return c.LastTerminationState.Terminated != nil }
