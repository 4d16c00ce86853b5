package job

import "strconv"

// Flag says whether a feature flag of the runner is on. The runner hands over
// those that its configuration or the job sets; others are as byDefault says.
func (e Environment) Flag(name string, byDefault bool) bool {
	on, err := strconv.ParseBool(e.Variable(name))
	if err != nil {
		return byDefault
	}
	return on
}
