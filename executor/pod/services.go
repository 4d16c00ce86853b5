package pod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Service is a service of the job: a container that runs beside those of its
// stages, in the same network.
type Service struct {
	// Container is the name of its container.
	Container string
	Image     string
	// Names are the host names by which the job reaches it.
	Names []string
	// Label is what the job log calls it: its image without the version, and
	// the aliases that the job gives it.
	Label string
	// Port is the port that has to answer before the job begins, 0 for none.
	Port int32

	definition job.Image
	// variables are those that the service itself declares, expanded.
	variables []job.Variable
	// operators is whether the configuration has it, not the job.
	operators bool
}

// healthVariable is the variable of a service that names the port to wait for
// (executors/kubernetes/kubernetes.go, waitForServices).
const healthVariable = "HEALTHCHECK_TCP_PORT"

// JobServices are the job's services: those of the configuration, then its own
// (executors/kubernetes/kubernetes.go, prepareOptions). A service without a name
// is none. The error is a *failure.Failure.
func (p Plan) JobServices() ([]Service, error) {
	var all []Service
	names := newContainerNames()
	add := func(definition job.Image, operators bool) error {
		if definition.Name == "" {
			return nil
		}
		s := Service{
			Container: names.next(definition.Aliases()), Image: definition.Name,
			Label:      strings.Join(append([]string{imageName(definition.Name)}, definition.Aliases()...), "-"),
			definition: definition, operators: operators,
			variables: p.Job.OwnVariables(p.Variables, definition.Variables),
		}
		var err error
		if s.Names, err = hostNames(definition); err != nil {
			return s.refuse(err)
		}
		if s.Port, err = s.port(); err != nil {
			return s.refuse(err)
		}
		all = append(all, s)
		return nil
	}
	for _, s := range p.Settings.Services {
		if err := add(p.configured(s), true); err != nil {
			return nil, err
		}
	}
	for _, definition := range p.Job.Services {
		// The runner has expanded their names and aliases
		// (common/build.go, expandContainerOptions).
		if err := add(definition, false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// configured is a service of the configuration as a job would define it.
func (p Plan) configured(s settings.Service) job.Image {
	definition := job.Image{
		Name:    p.expand(s.Name),
		Alias:   p.expand(s.Alias),
		Command: s.Command, Entrypoint: s.Entrypoint,
	}
	for _, entry := range s.Environment {
		name, value, _ := strings.Cut(entry, "=")
		definition.Variables = append(definition.Variables, job.Variable{Key: name, Value: value})
	}
	return definition
}

// refuse is the failure of a service that cannot be: its author's.
func (s Service) refuse(err error) error {
	if s.operators {
		return failure.Wrap(failure.Settings, err, "the service %s of kubernetes.services", s.Image)
	}
	return failure.Wrap(failure.JobInvalid, err, "the service %s of the job", s.Image)
}

// variable is the value of one of the service's own variables.
func (s Service) variable(name string) string {
	for _, v := range s.variables {
		if v.Key == name {
			return v.Value
		}
	}
	return ""
}

func (s Service) port() (int32, error) {
	text := s.variable(healthVariable)
	if text == "" {
		return 0, nil
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("its variable %s is %q: it has to be a port, from 1 to 65535", healthVariable, text)
	}
	return int32(port), nil
}

// hostNames are the names that stand for a service: made of its image, and its
// aliases. Services with ports are the web IDE's and have none
// (executors/kubernetes/host_aliases.go).
func hostNames(definition job.Image) ([]string, error) {
	if len(definition.Ports) > 0 {
		return nil, nil
	}
	var names []string
	name := imageName(definition.Name)
	for _, made := range []string{strings.ReplaceAll(name, "/", "__"), strings.ReplaceAll(name, "/", "-")} {
		if len(validation.IsDNS1123Subdomain(made)) == 0 && !slices.Contains(names, made) {
			names = append(names, made)
		}
	}
	for _, alias := range definition.Aliases() {
		if problems := validation.IsDNS1123Subdomain(alias); len(problems) > 0 {
			return nil, fmt.Errorf("its alias %q is no host name: %s", alias, strings.Join(problems, "; "))
		}
		if !slices.Contains(names, alias) {
			names = append(names, alias)
		}
	}
	return names, nil
}

// imageName is an image's name without tag, digest and the registry's port
// (helpers/container/services/services.go).
func imageName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	host, rest, found := strings.Cut(name, "/")
	if !found {
		return name
	}
	host, _, _ = strings.Cut(host, ":")
	return host + "/" + rest
}

// containerNames gives each service's container a name of its own.
type containerNames struct {
	taken map[string]bool
	svc   int
}

func newContainerNames() *containerNames {
	return &containerNames{taken: map[string]bool{string(job.Build): true, string(job.Helper): true}}
}

// initPrefix begins the names of init containers, which share one space with
// those of containers.
const initPrefix = "init-"

// next is the first of the aliases that is free and fit for a container, or
// else svc-N (executors/kubernetes/kubernetes.go, getServiceDefinition).
func (n *containerNames) next(aliases []string) string {
	for _, alias := range aliases {
		if len(validation.IsDNS1123Label(alias)) == 0 && !n.taken[alias] && !strings.HasPrefix(alias, initPrefix) {
			n.taken[alias] = true
			return alias
		}
	}
	for {
		name := "svc-" + strconv.Itoa(n.svc)
		n.svc++
		if !n.taken[name] {
			n.taken[name] = true
			return name
		}
	}
}

// sharedVariables names the Secret with the variables that all services get.
// No container has a dot in its name.
const sharedVariables = "services.job"

// services adds the services' containers, the names by which the job reaches
// them, and the Secrets with their variables.
func (b *builder) services() error {
	services, err := b.JobServices()
	if err != nil || len(services) == 0 {
		return err
	}
	b.Services = services
	shared, err := b.secretEnvironment(sharedVariables, b.Job.OpenVariables(b.Variables))
	if err != nil {
		return failure.Wrap(failure.JobInvalid, err, "the variables of the job")
	}
	hosts := corev1.HostAlias{IP: "127.0.0.1"}
	for _, s := range services {
		container, err := b.service(s)
		if err != nil {
			return err
		}
		own, err := b.secretEnvironment(s.Container, s.variables)
		if err != nil {
			return s.refuse(err)
		}
		container.EnvFrom = slices.Concat(shared, own) // of two values the later counts
		b.Pod.Spec.Containers = append(b.Pod.Spec.Containers, container)
		for _, name := range s.Names {
			if !slices.Contains(hosts.Hostnames, name) {
				hosts.Hostnames = append(hosts.Hostnames, name)
			}
		}
	}
	if len(hosts.Hostnames) > 0 {
		// First, since of two addresses of a name the first counts.
		b.Pod.Spec.HostAliases = append([]corev1.HostAlias{hosts}, b.Pod.Spec.HostAliases...)
	}
	return b.nameServices()
}

// service is a service's container but for its variables.
func (b *builder) service(s Service) (corev1.Container, error) {
	resources, err := b.serviceResources(s)
	if err != nil {
		return corev1.Container{}, err
	}
	// The operator's own too: their names may hold variables of the job.
	if err := b.allowed(s.Image, "services", b.Settings.AllowedServices); err != nil {
		return corev1.Container{}, err
	}
	policy, err := b.pull(s.Container, s.definition)
	if err != nil {
		return corev1.Container{}, err
	}
	container := corev1.Container{
		Name:            s.Container,
		Image:           s.Image,
		ImagePullPolicy: policy,
		Command:         notEmpty(s.definition.Entrypoint),
		Args:            notEmpty(s.definition.Command),
		Resources:       resources,
		// A shell as a service ends where it can read nothing.
		Stdin: true,
		// A container that does not start says why in its log, if anywhere.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	for _, port := range s.definition.Ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{ContainerPort: port.Number})
	}
	return container, nil
}

// notEmpty is a command, nil for one that says nothing: GitLab writes null, []
// or [""] for it.
func notEmpty(command []string) []string {
	if len(command) == 0 || len(command) == 1 && command[0] == "" {
		return nil
	}
	return command
}
