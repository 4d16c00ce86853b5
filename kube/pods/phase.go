package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Phase is how far a Pod is on its way to being used. Kubernetes' own phase
// "Pending" covers two very different waits, for a node and for images.
type Phase int

const (
	// Unscheduled: no node has taken the Pod yet.
	Unscheduled Phase = iota
	// Starting: a node has it, and pulls images or starts containers.
	Starting
	// Running: every container that is needed runs, and the others have run at
	// least. Commands may not reach it yet.
	Running
	// Ended: it will not run any more.
	Ended
)

// String is the phase in words.
func (p Phase) String() string {
	return [...]string{"waiting for a node", "starting", "running", "ended"}[p]
}

// Problem is what keeps a container from running.
type Problem struct {
	// Container and Image are whose problem it is.
	Container, Image string
	// Kind says what to make of it.
	Kind Kind
	// Reason and Message are the kubelet's words.
	Reason, Message string
	// Ended is whether the container has ended, with Code.
	Ended bool
	Code  int32
	// Init is whether it is an init container, Ran whether it has run before, and
	// Foreign whether somebody else has added it; see Roles.
	Init, Ran, Foreign bool
}

// Kind sorts the problems of a container by what can be done about them.
type Kind int

const (
	// Passing may mend itself: a registry that does not answer, a network
	// that is not up yet.
	Passing Kind = iota
	// ImageMissing: the registry does not have the image.
	ImageMissing
	// PullDenied: the registry does not give the image to whoever asks.
	PullDenied
	// ImageInvalid: the image's name is not one.
	ImageInvalid
	// ImageAbsent: the node does not have the image and may not pull it.
	ImageAbsent
	// ImagePlatform: the image is for other machines than the node.
	ImagePlatform
	// RegistryDown: the registry does not answer or is not well.
	RegistryDown
	// RegistryLimit: the registry gives no more for now.
	RegistryLimit
	// PullFailing: the image cannot be pulled, for a reason that may pass.
	PullFailing
	// NotStartable: the image is there and its container cannot start.
	NotStartable
	// OutOfMemory: the kernel ended the container at its memory limit.
	OutOfMemory
	// Exited: the container ended by itself.
	Exited
)

// State is what a Pod's status says.
type State struct {
	Phase    Phase
	Node     string
	Problems []Problem
	// Misfit is whether the node has refused the Pod for what it asks for.
	Misfit bool
	// Over are the containers that have ended and are not needed.
	Over []Problem
	// Detail is why the Pod waits or ended, in the cluster's words; "" where
	// it says nothing.
	Detail string
	// Verdict is the scheduler's, of a Pod without a node.
	Verdict Verdict
}

// StateOf reads the status of a Pod. The containers named as needed have to
// run; the others may end by themselves. Without any name all are needed.
func StateOf(pod *corev1.Pod, needed ...string) State { return Roles{Needed: needed}.StateOf(pod) }

// StateOf reads the status of a Pod.
func (r Roles) StateOf(pod *corev1.Pod) State {
	s := State{Node: pod.Spec.NodeName}
	for _, p := range problems(pod) {
		p.Foreign = r.foreign(p.Container)
		if r.dispensable(p) {
			s.Over = append(s.Over, p)
		} else {
			s.Problems = append(s.Problems, p)
		}
	}
	switch {
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		s.Phase, s.Misfit = Ended, misfit(pod.Status.Reason)
		s.Detail = endReason(pod, s)
	case pod.Spec.NodeName == "":
		s.Phase, s.Verdict = Unscheduled, verdict(pod)
		s.Detail = conditionMessage(pod, corev1.PodScheduled)
	case s.allRunning(pod):
		s.Phase = Running
	case slices.ContainsFunc(s.Problems, Problem.hinders):
		s.Phase = Ended
		s.Detail = endReason(pod, s)
	default:
		s.Phase = Starting
		s.Detail = waitReason(s.Problems)
	}
	return s
}

// Find is the first problem of one of the kinds, nil if there is none.
func (s State) Find(kinds ...Kind) *Problem {
	for i := range s.Problems {
		if slices.Contains(kinds, s.Problems[i].Kind) {
			return &s.Problems[i]
		}
	}
	return nil
}

func (s State) allRunning(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
		return false
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		over := slices.ContainsFunc(s.Over, func(p Problem) bool { return p.Container == c.Name })
		// Started is false while a startup probe has not passed yet.
		return !over && (c.State.Running == nil || c.Started != nil && !*c.Started)
	})
}

func problems(pod *corev1.Pod) []Problem {
	var all []Problem
	for _, c := range pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t == nil || t.ExitCode != 0 {
			all = append(all, initProblem(problemsOf(c))...)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		all = append(all, problemsOf(c)...)
	}
	return all
}

// problemsOf is what stands in the way of one container, if anything does.
func problemsOf(c corev1.ContainerStatus) []Problem {
	switch w := c.State.Waiting; {
	case c.State.Terminated != nil:
		return []Problem{terminated(c)}
	case w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
		return []Problem{{Container: c.Name, Image: c.Image, Kind: waitingKind(w.Reason, w.Message), Reason: w.Reason, Message: w.Message, Ran: hasRun(c)}}
	}
	return nil
}

func terminated(c corev1.ContainerStatus) Problem {
	t := c.State.Terminated
	p := Problem{Container: c.Name, Image: c.Image, Kind: Exited, Reason: t.Reason, Message: t.Message, Ended: true, Code: t.ExitCode}
	switch {
	case t.Reason == "OOMKilled":
		p.Kind = OutOfMemory
	case otherMachine(t.Message):
		p.Kind = ImagePlatform
	case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
		p.Kind = NotStartable
	}
	if p.Message == "" {
		p.Message = fmt.Sprintf("exit code %d", t.ExitCode)
	}
	return p
}

// waitingKind sorts the reasons that the kubelet gives for a waiting container
// (pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime in Kubernetes).
func waitingKind(reason, message string) Kind {
	if pulling(reason) {
		return pullKind(reason, message)
	}
	switch reason {
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff":
		// A busy node lets the creation time out, and then trips over the name
		// that the first try took; the kubelet mends both.
		switch {
		case otherMachine(message):
			return ImagePlatform
		case !strings.Contains(message, "context deadline exceeded") && !strings.Contains(message, "is reserved for"):
			return NotStartable
		}
	}
	return Passing
}

func waitReason(all []Problem) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].words(" (container " + all[0].Container + ")")
}

// endReason says why a Pod ended. Evicted Pods sometimes have no reason of
// their own (kubernetes/kubernetes#105467); then the condition that announced
// the disruption or a container's end tells.
func endReason(pod *corev1.Pod, s State) string {
	if pod.Status.Reason != "" || pod.Status.Message != "" {
		return joinReason(pod.Status.Reason, pod.Status.Message)
	}
	if text := conditionMessage(pod, corev1.DisruptionTarget); text != "" {
		return text
	}
	for _, p := range slices.Concat(s.Problems, s.Over) {
		return joinReason(p.Reason+" (container "+p.Container+")", p.Message)
	}
	return ""
}

func conditionMessage(pod *corev1.Pod, kind corev1.PodConditionType) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return joinReason(c.Reason, c.Message)
		}
	}
	return ""
}

func joinReason(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
