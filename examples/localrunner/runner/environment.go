package runner

import (
	"encoding/json"
	"strconv"
	"strings"

	"gitlab.com/gitlab-org/gitlab-runner/executors/custom/api"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// EnvPrefix begins the names of the job's variables in a driver's environment.
const EnvPrefix = "CUSTOM_ENV_"

// Own returns the variables that every driver call gets beside the job's, for
// an attempt with the temporary folder dir.
func Own(dir string) []string {
	return []string{
		"TMPDIR=" + dir,
		api.BuildFailureExitCodeVariable + "=" + strconv.Itoa(buildFailureCode),
		api.SystemFailureExitCodeVariable + "=" + strconv.Itoa(systemFailureCode),
		api.BuildCodeFileVariable + "=" + dir + "/build_exit_code",
		api.JobResponseFileVariable + "=" + responseFile(dir),
	}
}

func responseFile(dir string) string { return dir + "/response.json" }

// JobEnvironment returns the variables of the job as a driver gets them: each
// with EnvPrefix, file variables with their content.
func JobEnvironment(b *build.Build) []string {
	vars := b.Variables()
	env := make([]string, 0, len(vars)+1)
	for _, v := range vars {
		env = append(env, EnvPrefix+v.Key+"="+v.Value)
	}
	return append(env, EnvPrefix+"CI_JOB_SERVICES="+services(b.Job.Services, vars))
}

// services is the value of CI_JOB_SERVICES: JSON with fewer fields than the
// job's payload has, or nothing when there is no service
// (executors/custom/custom.go, getCIJobServicesEnv).
func services(list []job.Image, vars job.Variables) string {
	if len(list) == 0 {
		return ""
	}
	type service struct {
		Name       string            `json:"name"`
		Alias      string            `json:"alias"`
		Entrypoint []string          `json:"entrypoint"`
		Command    []string          `json:"command"`
		Variables  map[string]string `json:"variables,omitempty"`
	}
	out := make([]service, len(list))
	for i, s := range list {
		out[i] = service{
			Name:       s.Name,
			Alias:      firstAlias(s.Alias),
			Entrypoint: s.Entrypoint,
			Command:    s.Command,
			Variables:  serviceVariables(s.Variables, vars),
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		panic("strings cannot fail to marshal: " + err.Error())
	}
	return string(data)
}

func firstAlias(aliases string) string {
	names := strings.Fields(strings.ReplaceAll(aliases, ",", " "))
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func serviceVariables(own, vars job.Variables) map[string]string {
	if len(own) == 0 {
		return nil
	}
	all := append(append(job.Variables{}, vars...), own...).Expand()
	values := make(map[string]string, len(own))
	for _, v := range own {
		values[v.Key] = all.Value(v.Key)
	}
	return values
}
