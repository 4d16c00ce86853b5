// Package show writes what operators' commands have found: tables for people on
// a terminal, JSON or YAML for programs.
package show

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// Format is how a command writes its output.
type Format string

// The formats. Wide is a table with more columns.
const (
	TableFormat Format = "table"
	WideFormat  Format = "wide"
	JSONFormat  Format = "json"
	YAMLFormat  Format = "yaml"
)

// ParseFormat reads the value of --output; allowed are the formats that the
// command has.
func ParseFormat(text string, allowed []Format) (Format, error) {
	if slices.Contains(allowed, Format(text)) {
		return Format(text), nil
	}
	return "", fmt.Errorf("--output is %q: use %s", text, Names(allowed))
}

// Names lists formats as a person says them: "table, json or yaml".
func Names(formats []Format) string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Table says whether the format is for people.
func (f Format) Table() bool { return f == TableFormat || f == WideFormat }

// Write writes a value as JSON or YAML. YAML takes its names from the JSON
// tags; documents of a stream are told apart by "---".
func (f Format) Write(out io.Writer, value any) error {
	if f == JSONFormat {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(append([]byte("---\n"), text...))
	return err
}

// Terminal says whether something is a terminal that a person sits at.
func Terminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// Coloured says whether output to a stream may have colours: on a terminal that
// knows them, unless NO_COLOR has any value (no-color.org).
func Coloured(stream any, env map[string]string) bool {
	return Terminal(stream) && env["NO_COLOR"] == "" && env["TERM"] != "dumb"
}

// Plain passes text on without colours. A Write holds whole lines.
type Plain struct{ To io.Writer }

// Write implements io.Writer.
func (p Plain) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.To, joblog.WithoutColours(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
