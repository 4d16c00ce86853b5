package job

import (
	"os"
	"path"
	"slices"
	"strings"
)

// Variable is a CI variable as GitLab sends it: its value is not expanded.
type Variable struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Public is whether the value may be seen by whatever the job starts, such
	// as its services.
	Public bool `json:"public"`
	// File is whether scripts find the value in a file, and the file's path in
	// the variable.
	File   bool `json:"file"`
	Masked bool `json:"masked"`
	// Raw is whether the value is taken as it is, dollar signs and all.
	Raw bool `json:"raw"`
}

// tempDirVariable is the folder of file variables, in the Pod
// (common/spec/variables.go:19).
const tempDirVariable = "RUNNER_TEMP_PROJECT_DIR"

// servicesVariable is the runner's extract of the job's services for drivers
// (executors/custom/custom.go:277). It is no variable of the job.
const servicesVariable = "CI_JOB_SERVICES"

// runnerWins are variables that the runner sets after the job's own
// (common/build.go, getBaseVariablesAfterJob), so that no job can change them.
var runnerWins = []string{"CI_SHARED_ENVIRONMENT", "CI_RUNNER_VERSION", "CI_RUNNER_REVISION", "CI_RUNNER_EXECUTABLE_ARCH", tempDirVariable}

// tlsFiles are file variables that the runner makes (common/build.go,
// GetCITLSVariables).
var tlsFiles = []string{"CI_SERVER_TLS_CA_FILE", "CI_SERVER_TLS_CERT_FILE", "CI_SERVER_TLS_KEY_FILE"}

// file says whether a variable of the job is a file.
func (j Job) file(name string) bool {
	if file, secret := j.Secrets[name]; secret {
		return file
	}
	for _, v := range slices.Backward(j.Variables) {
		if v.Key == name {
			return v.File
		}
	}
	return slices.Contains(tlsFiles, name)
}

func filePath(env Environment, name string) string {
	return path.Join(env.Variable(tempDirVariable), name)
}

// ExpandWith replaces $NAME and ${NAME} in text as the runner does
// (common/spec/variables.go:103): by a variable of own, or else by the job's. A
// file variable stands for its path, so that its content gets nowhere but into
// its file; $$ is a dollar sign, and what is no variable of the job is nothing.
// It is the only way to expand.
func (j Job) ExpandWith(env Environment, own []Variable, text string) string {
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return "$"
		}
		for _, v := range slices.Backward(own) {
			switch {
			case v.Key != name:
			case v.File:
				return filePath(env, name)
			default:
				return v.Value
			}
		}
		if j.file(name) {
			return filePath(env, name)
		}
		return env.Variable(name)
	})
}

// OwnVariables are the variables that a service declares, expanded as the
// runner does (common/build.go, GetServiceVariables): by each other as they were
// written, and by all variables of the job, private ones too. Of several with
// one name the last counts.
func (j Job) OwnVariables(env Environment, own []Variable) []Variable {
	var expanded []Variable
	for _, v := range own {
		switch {
		case v.File:
			v.Value = filePath(env, v.Key)
		case !v.Raw:
			v.Value = j.ExpandWith(env, own, v.Value)
		}
		expanded = slices.DeleteFunc(expanded, func(other Variable) bool { return other.Key == v.Key })
		expanded = append(expanded, v)
	}
	return expanded
}

// OpenVariables are the variables that the kubernetes executor shows to every
// service: the job's public ones and the runner's own, with their values, by
// name. A variable that is not public hides, and lets a public one of the same
// name be seen that it overrides (common/spec/variables.go, PublicOrInternal).
func (j Job) OpenVariables(env Environment) []Variable {
	open := map[string]string{}
	for name := range env {
		if name, ours := strings.CutPrefix(name, variablePrefix); ours {
			if value, shown := j.open(env, name); shown {
				open[name] = value
			}
		}
	}
	all := make([]Variable, 0, len(open))
	for name, value := range open {
		all = append(all, Variable{Key: name, Value: value, Public: true})
	}
	slices.SortFunc(all, func(a, b Variable) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// open is the value of a variable as everybody may see it.
func (j Job) open(env Environment, name string) (value string, shown bool) {
	last, public := j.sent(name)
	_, secret := j.Secrets[name]
	value = env.Variable(name)
	flag := strings.HasPrefix(name, "FF_") && (value == "true" || value == "false")
	switch {
	case flag, slices.Contains(runnerWins, name):
		return value, true
	case last < 0 && (secret || name == servicesVariable):
		return "", false
	case last >= 0 && public < 0:
		return "", false
	case j.file(name) && (public < 0 || public == last):
		return filePath(env, name), true
	case public == last && !secret:
		return value, true
	}
	v := j.Variables[public]
	switch {
	case v.File:
		return filePath(env, name), true
	case v.Raw:
		return v.Value, true
	}
	return j.ExpandWith(env, nil, v.Value), true
}

// sent finds a name among the variables that GitLab sent: the last of all and
// the last public one, -1 where there is none.
func (j Job) sent(name string) (last, public int) {
	last, public = -1, -1
	for i, v := range j.Variables {
		if v.Key == name {
			last = i
			if v.Public {
				public = i
			}
		}
	}
	return last, public
}
