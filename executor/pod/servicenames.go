package pod

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// AnnotationServices has the names of the job's services by their containers, as
// JSON, for people who look for one: a container has the first alias at the most.
const AnnotationServices = domain + "services"

// nameServices writes the annotation.
func (b *builder) nameServices() error {
	names := map[string][]string{}
	for _, s := range b.Services {
		names[s.Container] = s.Names
	}
	text, err := json.Marshal(names)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "the names of the services")
	}
	b.Pod.Annotations[AnnotationServices] = string(text)
	return nil
}

// ServiceNames are the containers of a job's Pod beside those of stages, in
// their order, with the names by which the job reaches each.
func ServiceNames(p *corev1.Pod) []ServiceName {
	names := map[string][]string{}
	_ = json.Unmarshal([]byte(p.Annotations[AnnotationServices]), &names) // without it there are the containers' own
	var all []ServiceName
	for _, c := range p.Spec.Containers {
		if c.Name != string(job.Build) && c.Name != string(job.Helper) {
			all = append(all, ServiceName{Container: c.Name, Image: c.Image, Names: names[c.Name]})
		}
	}
	return all
}

// ServiceName is what people may call a service's container.
type ServiceName struct {
	Container, Image string
	Names            []string
}
