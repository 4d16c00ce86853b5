package pod_test

import (
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// A Docker daemon that cannot run is told before a node boots, by the Pod as it
// comes out, and the job is made all the same.
func TestDockerDaemons(t *testing.T) {
	yes, no, kata := true, false, "kata"
	for _, test := range []struct {
		name     string
		service  job.Image
		settings func(*settings.Kubernetes)
		noted    bool
	}{
		{"by its tag", job.Image{Name: "docker:dind"}, nil, true},
		{"of a version", job.Image{Name: "docker:28.3-dind-alpine3.22"}, nil, true},
		{"without root", job.Image{Name: "docker:28-dind-rootless"}, nil, true},
		{"with a digest", job.Image{Name: "docker:dind@sha256:0123"}, nil, true},
		{"behind a mirror", job.Image{Name: "mirror.example.com:5000/library/docker:27-dind"}, nil, true},
		{"behind a dependency proxy", job.Image{Name: "gitlab.example.com/group/dependency_proxy/containers/docker:dind"}, nil, true},
		{"with flags", job.Image{Name: "docker:dind", Command: []string{"--mtu=1400"}}, nil, true},
		{"by the daemon's name", job.Image{Name: "docker:dind", Command: []string{"dockerd", "--tls=false"}}, nil, true},
		{"with a capability that does not suffice", job.Image{Name: "docker:dind"}, func(s *settings.Kubernetes) { s.CapAdd = []string{"NET_ADMIN"} }, true},
		{"all but services", job.Image{Name: "docker:dind"}, func(s *settings.Kubernetes) {
			s.Privileged = &yes
			s.ServiceSecurityContext.Privileged = &no
		}, true},

		{"another program", job.Image{Name: "docker:dind", Command: []string{"sleep", "60"}}, nil, false},
		{"another entrypoint", job.Image{Name: "docker:dind", Entrypoint: []string{"sh", "-c"}}, nil, false},
		{"the client alone", job.Image{Name: "docker:28-cli"}, nil, false},
		{"without a tag", job.Image{Name: "docker"}, nil, false},
		{"a port that reads so", job.Image{Name: "dind.example.com:5000/docker"}, nil, false},
		{"podman", job.Image{Name: "quay.io/podman/stable:latest"}, nil, false},
		{"somebody's own", job.Image{Name: "registry.example.com/team/docker-dind:1"}, nil, false},
		{"a tag that has it in a word", job.Image{Name: "docker:redinder"}, nil, false},
		{"privileged", job.Image{Name: "docker:dind"}, func(s *settings.Kubernetes) { s.Privileged = &yes }, false},
		{"services privileged", job.Image{Name: "docker:dind"}, func(s *settings.Kubernetes) { s.ServiceSecurityContext.Privileged = &yes }, false},
		{"by a capability", job.Image{Name: "docker:dind"}, func(s *settings.Kubernetes) { s.CapAdd = []string{"SYS_ADMIN"} }, false},
		{"in another runtime", job.Image{Name: "docker:dind"}, func(s *settings.Kubernetes) { s.RuntimeClassName = &kata }, false},
		{"with an own /proc", job.Image{Name: "docker:dind-rootless"}, func(s *settings.Kubernetes) { s.ServiceSecurityContext.ProcMount = "unmasked" }, false},
		{"by a patch", job.Image{Name: "docker:dind", Alias: "docker"}, func(s *settings.Kubernetes) {
			s.PodSpec = []settings.PodSpecPatch{{Name: "x", Patch: "containers: [{ name: docker, securityContext: { privileged: true } }]"}}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plan()
			p.Variables = job.Environment{"CUSTOM_ENV_FF_USE_ADVANCED_POD_SPEC_CONFIGURATION": "true"}
			p.Job.Services = []job.Image{test.service}
			if test.settings != nil {
				test.settings(&p.Settings)
			}
			built, err := p.Build()
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(built.Notes, "\n")
			if strings.Contains(notes, "starts a Docker daemon without privileges") != test.noted || !test.noted && notes != "" {
				t.Errorf("notes %q, want one on the daemon: %v", notes, test.noted)
			}
			if test.noted && !strings.Contains(notes, "kubernetes.privileged") {
				t.Errorf("the note names no setting: %s", notes)
			}
		})
	}
}

// A job in Docker's image starts no daemon: its first process is the driver's.
func TestDockerImageOfTheJob(t *testing.T) {
	p := plan()
	p.Job.Image = job.Image{Name: "docker:dind"}
	built, err := p.Build()
	if err != nil || len(built.Notes) > 0 {
		t.Errorf("notes %q, error %v", built.Notes, err)
	}
}
