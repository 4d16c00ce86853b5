package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// live says what happens around the containers, and what they share of the
// node. It comes after every step that adds containers.
func (b *builder) live() error {
	s := b.Settings
	if s.PodGrace != nil {
		b.Pod.Spec.TerminationGracePeriodSeconds = s.PodGrace
	}
	for i := range b.Pod.Spec.Containers {
		b.Pod.Spec.Containers[i].Lifecycle = hooks(s.ContainerLifecycle)
	}
	whole, err := requirements([]settings.Resource{
		{Name: "cpu", Request: s.PodCPURequest, Limit: s.PodCPULimit},
		{Name: "memory", Request: s.PodMemoryRequest, Limit: s.PodMemoryLimit},
	})
	if err != nil {
		return failure.Wrap(failure.Settings, err, "resources of the Pod")
	}
	if len(whole.Requests)+len(whole.Limits) > 0 {
		b.Pod.Spec.Resources = &whole
	}
	return nil
}

func hooks(s settings.ContainerLifecycle) *corev1.Lifecycle {
	if s.PostStart == nil && s.PreStop == nil {
		return nil
	}
	return &corev1.Lifecycle{PostStart: hook(s.PostStart), PreStop: hook(s.PreStop)}
}

func hook(h *settings.Hook) *corev1.LifecycleHandler {
	if h == nil {
		return nil
	}
	handler := &corev1.LifecycleHandler{}
	if h.Exec != nil {
		handler.Exec = &corev1.ExecAction{Command: h.Exec.Command}
	}
	if h.HTTPGet != nil {
		handler.HTTPGet = &corev1.HTTPGetAction{
			Host: h.HTTPGet.Host, Path: h.HTTPGet.Path, Port: intstr.FromInt(h.HTTPGet.Port), Scheme: corev1.URIScheme(h.HTTPGet.Scheme),
		}
		for _, header := range h.HTTPGet.Headers {
			handler.HTTPGet.HTTPHeaders = append(handler.HTTPGet.HTTPHeaders, corev1.HTTPHeader{Name: header.Name, Value: header.Value})
		}
	}
	if h.TCPSocket != nil {
		handler.TCPSocket = &corev1.TCPSocketAction{Host: h.TCPSocket.Host, Port: intstr.FromInt(h.TCPSocket.Port)}
	}
	return handler
}
