package settings

import (
	"errors"
	"fmt"
	"slices"
)

// Lifecycle is what happens around a Pod's containers.
type Lifecycle struct {
	PodGrace     *int64 `toml:"pod_termination_grace_period_seconds" default:"5" doc:"How long, in seconds, the containers have to end when somebody else than cleanup deletes the Pod, such as an eviction." parity:"5 by default; the kubernetes executor leaves it to the cluster, which means 30"`
	CleanupGrace *int64 `toml:"cleanup_grace_period_seconds" default:"1" doc:"How long, in seconds, the containers have to end at the end of the job: at least 1, since the node would count as free while processes still run." parity:"1 by default; the kubernetes executor takes that of the Pod. 0 is refused"`

	AvailabilityAttempts  int   `toml:"resource_availability_check_max_attempts" default:"0" doc:"How often, every 5 seconds, prepare looks for service_account and image_pull_secrets before it makes the Pod. 0 does not look; below 0 is 5 times."`
	PrintPodWarningEvents *bool `toml:"print_pod_warning_events" default:"true" doc:"Whether warnings that the cluster has about the Pod stand in the job log."`

	ContainerLifecycle ContainerLifecycle `toml:"container_lifecycle" doc:"What runs in every container at its start and before its end."`
}

// ContainerLifecycle are the hooks of a container.
type ContainerLifecycle struct {
	PostStart *Hook `toml:"post_start" doc:"Runs right after the start. A container whose hook fails is ended, and the job with it."`
	PreStop   *Hook `toml:"pre_stop" doc:"Runs before the end, within the grace of cleanup_grace_period_seconds."`
}

// Hook does one of three things.
type Hook struct {
	Exec      *HookExec `toml:"exec" doc:"Runs a command in the container. A hook has one of exec, http_get and tcp_socket."`
	HTTPGet   *HookHTTP `toml:"http_get" doc:"Makes an HTTP request."`
	TCPSocket *HookTCP  `toml:"tcp_socket" doc:"Opens a TCP connection. Kubernetes has it for old files alone and does nothing."`
}

// HookExec is a command.
type HookExec struct {
	Command []string `toml:"command" example:"touch,/tmp/started" doc:"Program and arguments. There is no shell unless it names one."`
}

// HookHTTP is a request.
type HookHTTP struct {
	Host    string       `toml:"host" example:"hooks.example.com" doc:"Host. Without it the Pod itself."`
	Path    string       `toml:"path" example:"/started" doc:"Path."`
	Port    int          `toml:"port" example:"8080" doc:"Port."`
	Scheme  string       `toml:"scheme" example:"HTTP" doc:"HTTP or HTTPS. Without it HTTP."`
	Headers []HTTPHeader `toml:"http_headers" doc:"Headers of the request."`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	Name  string `toml:"name" example:"X-Job" doc:"The header's name."`
	Value string `toml:"value" example:"ci" doc:"The header's value."`
}

// HookTCP is a connection.
type HookTCP struct {
	Host string `toml:"host" example:"hooks.example.com" doc:"Host. Without it the Pod itself."`
	Port int    `toml:"port" example:"8080" doc:"Port."`
}

func (l Lifecycle) check() []error {
	var all []error
	if l.PodGrace != nil && *l.PodGrace < 0 {
		all = append(all, fmt.Errorf("kubernetes.pod_termination_grace_period_seconds is %d: it has to be 0 or more", *l.PodGrace))
	}
	if l.CleanupGrace != nil && *l.CleanupGrace < 1 {
		all = append(all, fmt.Errorf("kubernetes.cleanup_grace_period_seconds is %d: it has to be at least 1; with 0 the Pod vanishes while its processes still hold the node", *l.CleanupGrace))
	}
	for _, hook := range []struct {
		key string
		h   *Hook
	}{{"post_start", l.ContainerLifecycle.PostStart}, {"pre_stop", l.ContainerLifecycle.PreStop}} {
		all = append(all, hook.h.check("kubernetes.container_lifecycle."+hook.key))
	}
	return all
}

func (h *Hook) check(key string) error {
	if h == nil {
		return nil
	}
	var kinds []string
	var all []error
	if h.Exec != nil {
		kinds = append(kinds, "exec")
		if len(h.Exec.Command) == 0 {
			all = append(all, fmt.Errorf("%s.exec.command is not set", key))
		}
	}
	if h.HTTPGet != nil {
		kinds = append(kinds, "http_get")
		all = append(all, checkPort(key+".http_get.port", h.HTTPGet.Port))
		if !slices.Contains([]string{"", "HTTP", "HTTPS"}, h.HTTPGet.Scheme) {
			all = append(all, fmt.Errorf("%s.http_get.scheme is %q: use HTTP or HTTPS", key, h.HTTPGet.Scheme))
		}
	}
	if h.TCPSocket != nil {
		kinds = append(kinds, "tcp_socket")
		all = append(all, checkPort(key+".tcp_socket.port", h.TCPSocket.Port))
	}
	if len(kinds) != 1 {
		all = append(all, fmt.Errorf("%s has %d of exec, http_get and tcp_socket: it takes one", key, len(kinds)))
	}
	return errors.Join(all...)
}

func checkPort(key string, port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("%s is %d: a port is from 1 to 65535", key, port)
	}
	return nil
}
