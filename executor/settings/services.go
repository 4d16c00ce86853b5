package settings

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ServiceContainers are the containers beside those of the job's stages.
type ServiceContainers struct {
	Services []Service `toml:"services" doc:"A service that every job gets, before the job's own."`

	ServiceCPURequest              string `toml:"service_cpu_request" example:"100m" doc:"As cpu_request, for each service."`
	ServiceCPULimit                string `toml:"service_cpu_limit" example:"1" doc:"As cpu_limit, for each service."`
	ServiceMemoryRequest           string `toml:"service_memory_request" example:"256Mi" doc:"As memory_request, for each service."`
	ServiceMemoryLimit             string `toml:"service_memory_limit" example:"1Gi" doc:"As memory_limit, for each service."`
	ServiceEphemeralStorageRequest string `toml:"service_ephemeral_storage_request" example:"1Gi" doc:"As ephemeral_storage_request, for each service."`
	ServiceEphemeralStorageLimit   string `toml:"service_ephemeral_storage_limit" example:"10Gi" doc:"As ephemeral_storage_limit, for each service."`

	ServiceCPURequestMax              string `toml:"service_cpu_request_overwrite_max_allowed" example:"1" doc:"The most that KUBERNETES_SERVICE_CPU_REQUEST may ask for, as a variable of the job or of one service. Without it the variable does nothing."`
	ServiceCPULimitMax                string `toml:"service_cpu_limit_overwrite_max_allowed" example:"2" doc:"As service_cpu_request_overwrite_max_allowed, for KUBERNETES_SERVICE_CPU_LIMIT."`
	ServiceMemoryRequestMax           string `toml:"service_memory_request_overwrite_max_allowed" example:"2Gi" doc:"As service_cpu_request_overwrite_max_allowed, for KUBERNETES_SERVICE_MEMORY_REQUEST."`
	ServiceMemoryLimitMax             string `toml:"service_memory_limit_overwrite_max_allowed" example:"4Gi" doc:"As service_cpu_request_overwrite_max_allowed, for KUBERNETES_SERVICE_MEMORY_LIMIT."`
	ServiceEphemeralStorageRequestMax string `toml:"service_ephemeral_storage_request_overwrite_max_allowed" example:"5Gi" doc:"As service_cpu_request_overwrite_max_allowed, for KUBERNETES_SERVICE_EPHEMERAL_STORAGE_REQUEST."`
	ServiceEphemeralStorageLimitMax   string `toml:"service_ephemeral_storage_limit_overwrite_max_allowed" example:"20Gi" doc:"As service_cpu_request_overwrite_max_allowed, for KUBERNETES_SERVICE_EPHEMERAL_STORAGE_LIMIT."`
}

// Service is one service of the configuration.
type Service struct {
	Name        string   `toml:"name" example:"registry.example.com/redis:7" doc:"Image of the service; job variables in it are expanded. A service whose name comes out empty is left out."`
	Alias       string   `toml:"alias" parity:"an alias that is no host name is refused when the file is read" example:"cache db" doc:"Further host names of the service, with blanks or commas between them; job variables are expanded."`
	Command     []string `toml:"command" example:"redis-server,--appendonly,yes" parity:"taken with FF_KUBERNETES_HONOR_ENTRYPOINT as well, where the kubernetes executor drops it" doc:"Arguments in place of the image's own."`
	Entrypoint  []string `toml:"entrypoint" example:"docker-entrypoint.sh" parity:"taken with FF_KUBERNETES_HONOR_ENTRYPOINT as well, where the kubernetes executor drops it; [\"\"] means the image's own" doc:"Program in place of the image's own entrypoint."`
	Environment []string `toml:"environment" parity:"an entry without = is refused, where the kubernetes executor passes over it; the values are in a Secret, not in the Pod" example:"MODE=test" doc:"Variables of the service, each as NAME=value; job variables in the value are expanded. HEALTHCHECK_TCP_PORT among them has prepare wait until the port answers."`
}

// ServiceResource is one number of the services' resources: what the
// configuration says, and how far a variable may change it.
type ServiceResource struct {
	// Resource is cpu, memory or ephemeral_storage; Limit says whether this is
	// its limit or its request.
	Resource string
	Limit    bool
	// Value and Max are quantities, "" where not set.
	Value, Max string
}

// Side is "request" or "limit".
func (r ServiceResource) Side() string {
	if r.Limit {
		return "limit"
	}
	return "request"
}

// Key is the key of Value.
func (r ServiceResource) Key() string { return "service_" + r.Resource + "_" + r.Side() }

// Variable is the variable that overwrites Value.
func (r ServiceResource) Variable() string {
	return "KUBERNETES_" + strings.ToUpper(r.Key())
}

// ServiceResources are the resources of each service, requests first.
func (s ServiceContainers) ServiceResources() []ServiceResource {
	return []ServiceResource{
		{"cpu", false, s.ServiceCPURequest, s.ServiceCPURequestMax},
		{"memory", false, s.ServiceMemoryRequest, s.ServiceMemoryRequestMax},
		{"ephemeral_storage", false, s.ServiceEphemeralStorageRequest, s.ServiceEphemeralStorageRequestMax},
		{"cpu", true, s.ServiceCPULimit, s.ServiceCPULimitMax},
		{"memory", true, s.ServiceMemoryLimit, s.ServiceMemoryLimitMax},
		{"ephemeral_storage", true, s.ServiceEphemeralStorageLimit, s.ServiceEphemeralStorageLimitMax},
	}
}

func (s ServiceContainers) check() []error {
	var all []error
	requests := map[string]ServiceResource{}
	for _, r := range s.ServiceResources() {
		value, err1 := quantity("kubernetes."+r.Key(), r.Value)
		_, err2 := quantity("kubernetes."+r.Key()+"_overwrite_max_allowed", r.Max)
		all = append(all, err1, err2)
		if !r.Limit {
			requests[r.Resource] = r
			continue
		}
		request := requests[r.Resource]
		if q, err := quantity("", request.Value); err1 == nil && err == nil && request.Value != "" && r.Value != "" && q.Cmp(value) > 0 {
			all = append(all, fmt.Errorf("kubernetes.%s is %s, more than %s, which is %s", request.Key(), request.Value, r.Key(), r.Value))
		}
	}
	for i, service := range s.Services {
		all = append(all, service.check(i)...)
	}
	return all
}

// check judges what does not depend on the job's variables.
func (s Service) check(i int) []error {
	var all []error
	where := fmt.Sprintf("kubernetes.services, entry %d", i+1)
	if s.Name == "" {
		all = append(all, fmt.Errorf("%s has no name: name the service's image", where))
	}
	for _, alias := range strings.FieldsFunc(s.Alias, func(r rune) bool { return r == ' ' || r == ',' }) {
		if problems := validation.IsDNS1123Subdomain(alias); len(problems) > 0 && !strings.Contains(alias, "$") {
			all = append(all, fmt.Errorf("%s (%s) has the alias %q, which is no host name: %s", where, s.Name, alias, strings.Join(problems, "; ")))
		}
	}
	for _, variable := range s.Environment {
		if name, _, found := strings.Cut(variable, "="); !found || name == "" {
			all = append(all, fmt.Errorf("%s (%s) has %q in environment: write NAME=value", where, s.Name, variable))
		}
	}
	return all
}
