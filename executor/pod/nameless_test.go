package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// A service whose name is empty is left out, as with the kubernetes executor, but
// not without a word.
func TestServicesWithoutAName(t *testing.T) {
	t.Parallel()
	objects := built(t, func(p *pod.Plan) {
		p.Settings.Services = []settings.Service{{Name: "redis:7"}, {Name: "${DB_IMAGE}"}}
		p.Job.Services = []job.Image{{Name: "", Alias: "db, sql"}, {Name: ""}, {Name: "nginx:1"}}
	})
	if diff := cmp.Diff([]string{
		"Service 2 of kubernetes.services is left out: nothing is left of its name ${DB_IMAGE}, since the job sets no DB_IMAGE. The job goes on without it.",
		"Service 1 of the job (db, sql) is left out: its name is empty, so a variable in it has no value. The job goes on without it.",
		"Service 2 of the job is left out: its name is empty, so a variable in it has no value. The job goes on without it.",
	}, objects.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if len(objects.Services) != 2 {
		t.Errorf("%d services, want redis and nginx", len(objects.Services))
	}
}
