package pod

import (
	"fmt"
	"regexp"
	"strings"
)

// nameless says which services are left out since nothing is left of their names:
// a variable in them has no value. As with the kubernetes executor the job runs
// without them, so that a variable can turn a service off; unlike there it is said.
func (p Plan) nameless() []string {
	var notes []string
	for i, s := range p.Settings.Services {
		if p.configured(s).Name == "" {
			notes = append(notes, fmt.Sprintf("Service %d of kubernetes.services is left out: %s. The job goes on without it.", i+1, emptied(s.Name)))
		}
	}
	for i, s := range p.Job.Services {
		if s.Name != "" {
			continue
		}
		called := ""
		if aliases := s.Aliases(); len(aliases) > 0 {
			called = " (" + strings.Join(aliases, ", ") + ")"
		}
		// The runner hands over what is left, so that the variable is not known.
		notes = append(notes, fmt.Sprintf("Service %d of the job%s is left out: its name is empty, so a variable in it has no value. The job goes on without it.", i+1, called))
	}
	return notes
}

// emptied says why nothing is left of a name.
func emptied(name string) string {
	var variables []string
	for _, found := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(name, -1) {
		variables = append(variables, found[1])
	}
	if len(variables) == 0 {
		return "it has no name"
	}
	return "nothing is left of its name " + name + ", since the job sets no " + strings.Join(variables, ", ")
}
