package job

import "os"

// Expand replaces $NAME and ${NAME} in text by the job's variables, as the
// runner does (common/spec/variables.go:74 and :153): $$ is a dollar sign, and
// what is no variable of the job is nothing, like a shell's own $1 or $?.
func (e Environment) Expand(text string) string {
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return "$"
		}
		return e.Variable(name)
	})
}
