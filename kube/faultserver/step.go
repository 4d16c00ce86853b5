package faultserver

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Step is one change of a Pod by the cluster: the scheduler, a kubelet,
// somebody who deletes it.
type Step struct {
	change func(*corev1.Pod)
	remove bool
}

// OnCreate says what becomes of each Pod that a client makes. The steps follow
// each other at once; a watch sees each of them.
func (s *Server) OnCreate(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCreate = steps
}

// Apply takes every Pod through further steps.
func (s *Server) Apply(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range slices.Clone(s.store.pods) {
		s.walk(pod, steps)
	}
	s.touch()
}

func (s *Server) walk(pod *corev1.Pod, steps []Step) {
	for _, step := range steps {
		i := s.store.index(pod.Namespace, pod.Name)
		if i < 0 {
			return
		}
		if step.remove {
			s.store.remove(i)
			return
		}
		changed := s.store.pods[i].DeepCopy()
		step.change(changed)
		s.store.put(watch.Modified, changed)
	}
}

// Change is a step of the test's own.
func Change(change func(*corev1.Pod)) Step { return Step{change: change} }

// Unscheduled is the scheduler's word that no node fits.
func Unscheduled(message string) Step {
	return Change(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodPending
		setCondition(p, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		})
	})
}

// Scheduled gives the Pod a node, which starts to create its containers.
func Scheduled(node string) Step {
	return Change(func(p *corev1.Pod) {
		p.Spec.NodeName = node
		setCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
		p.Status.ContainerStatuses = nil
		for _, c := range p.Spec.Containers {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			})
		}
	})
}

// Waiting is the kubelet's reason why a container does not start.
func Waiting(container, reason, message string) Step {
	return Change(func(p *corev1.Pod) {
		setState(p, container, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	})
}

// Running starts every container.
func Running() Step {
	return Change(func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		started := metav1.Now().Rfc3339Copy()
		p.Status.StartTime = &started
		for _, c := range p.Spec.Containers {
			setState(p, c.Name, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		}
	})
}

// Unready has the Pod run, but for one container whose startup probe has not
// passed. Running ends that.
func Unready(container string) Step {
	return Change(func(p *corev1.Pod) {
		Running().change(p)
		for i := range p.Status.ContainerStatuses {
			if c := &p.Status.ContainerStatuses[i]; c.Name == container {
				c.Started = new(bool)
			}
		}
	})
}

// Terminated ends one container.
func Terminated(container, reason string, code int32) Step {
	return Change(func(p *corev1.Pod) {
		setState(p, container, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}})
	})
}

// Evicted ends the Pod as a kubelet that is short of something does.
func Evicted(message string) Step {
	return Change(func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", message
	})
}

// Terminating marks the Pod as deleted; it stays for now.
func Terminating() Step {
	return Change(func(p *corev1.Pod) { markDeleted(p, 30) })
}

// Removed takes the Pod away.
func Removed() Step { return Step{remove: true} }

func markDeleted(p *corev1.Pod, grace int64) {
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
}

func setCondition(p *corev1.Pod, condition corev1.PodCondition) {
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
	p.Status.Conditions = append(p.Status.Conditions, condition)
}

func setState(p *corev1.Pod, container string, state corev1.ContainerState) {
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == container {
			c.State, c.Ready, c.Started = state, state.Running != nil, nil
			return
		}
	}
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
		corev1.ContainerStatus{Name: container, Image: imageOf(p, container), State: state, Ready: state.Running != nil})
}

func imageOf(p *corev1.Pod, container string) string {
	for _, c := range p.Spec.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}
