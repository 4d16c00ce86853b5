package pod

import (
	"fmt"
	"slices"
	"strings"
)

// Clash says in words that a service ended since its port was taken, as its
// last lines tell; "" where they do not. All containers of a Pod share one
// network, so that each port is there once.
func (s Service) Clash(all []Service, lines []string) string {
	if !slices.ContainsFunc(lines, taken) {
		return ""
	}
	text := "The port of service " + s.Label + " was taken already: all containers of a job share one network, in which each port is there once."
	var others []string
	for _, other := range all {
		if other.Container != s.Container && (other.Image == s.Image || s.Port != 0 && other.Port == s.Port) {
			others = append(others, other.Label)
		}
	}
	if len(others) > 0 {
		text += fmt.Sprintf(" The same port may be that of %s.", strings.Join(others, ", "))
	}
	return text + " Have one of them listen elsewhere, by its variables or its command."
}

// taken says whether a line of a log speaks of a port in use: the words of the C
// library, musl, Java and Node.js.
func taken(line string) bool {
	line = strings.ToLower(line)
	return strings.Contains(line, "address already in use") || strings.Contains(line, "address in use") || strings.Contains(line, "eaddrinuse")
}
