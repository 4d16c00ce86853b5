package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// The runner hears whether jobs share the folder of the builds, by the volumes
// with the job's variables in them.
func TestConfigTellsSharedBuilds(t *testing.T) {
	for name, test := range map[string]struct {
		volumes settings.Volumes
		want    bool
	}{
		"the Pod's own":      {settings.Volumes{}, false},
		"a claim":            {settings.Volumes{PVCs: []settings.PVC{{Name: "builds-$SLOT", MountPath: "/$WHERE"}}}, true},
		"a claim elsewhere":  {settings.Volumes{PVCs: []settings.PVC{{Name: "builds", MountPath: "/elsewhere"}}}, false},
		"a folder of memory": {settings.Volumes{EmptyDirs: []settings.EmptyDir{{Name: "builds", MountPath: "/builds", Medium: "Memory"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings.Defaults()
			s.Kubernetes.Volumes = test.volumes
			var out bytes.Buffer
			err := Config(ConfigParts{
				Settings: s, Job: job.Job{ID: 1}, Variables: job.Environment{"CUSTOM_ENV_SLOT": "1", "CUSTOM_ENV_WHERE": "builds"},
			}, &out)
			var answer api.ConfigExecOutput
			if err == nil {
				err = json.Unmarshal(out.Bytes(), &answer)
			}
			if err != nil || *answer.BuildsDirIsShared != test.want {
				t.Errorf("answered %s, error %v; want shared %v", out.String(), err, test.want)
			}
		})
	}
}

// A volume that the job's variables make impossible ends the job before it
// begins.
func TestConfigRefusesVolumes(t *testing.T) {
	s := settings.Defaults()
	s.Kubernetes.Volumes = settings.Volumes{PVCs: []settings.PVC{{Name: "$NOSUCH", MountPath: "/x"}}}
	var out bytes.Buffer
	err := Config(ConfigParts{Settings: s, Job: job.Job{ID: 1}}, &out)
	var f *failure.Failure
	if !errors.As(err, &f) || f.Cause != failure.JobInvalid || out.Len() > 0 {
		t.Errorf("error %v, answer %q; want %s and no answer", err, out.String(), failure.JobInvalid)
	}
}
