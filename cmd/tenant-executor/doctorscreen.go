package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages/doctor"
)

// Widths of doctor's columns.
const (
	stateWidth = 8
	checkWidth = 19
	// narrowest is the least width of a terminal that is worth wrapping for.
	narrowest = 60
)

// doctorScreen shows findings as they come.
type doctorScreen struct {
	out     io.Writer
	colours bool
	// width is where lines are wrapped, 0 for nowhere.
	width int
	group string
	// skipped are the last findings, where they are skipped for one reason.
	skipped []doctor.Finding
	err     error
}

func newDoctorScreen(out io.Writer, env job.Environment) *doctorScreen {
	s := &doctorScreen{out: out, colours: show.Coloured(out, env)}
	if file, is := out.(*os.File); is {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= narrowest {
			s.width = width
		}
	}
	return s
}

// paint is a text in the colour of a state.
func (s *doctorScreen) paint(state doctor.State, text string) string {
	colour := map[doctor.State]string{doctor.OK: "\033[32m", doctor.Warning: "\033[33m", doctor.Failure: "\033[1;31m", doctor.Skipped: "\033[2m"}[state]
	if !s.colours || colour == "" {
		return text
	}
	return colour + text + "\033[0m"
}

// tell shows one finding: a line, and below it what to do. Checks that are
// skipped for one reason share a line.
func (s *doctorScreen) tell(f doctor.Finding) {
	if n := len(s.skipped); n > 0 && (s.skipped[n-1].Evidence != f.Evidence || f.State != doctor.Skipped || s.skipped[n-1].Group != f.Group) {
		s.tellSkipped()
	}
	if f.State == doctor.Skipped {
		s.skipped = append(s.skipped, f)
		return
	}
	s.heading(f)
	const indent = stateWidth + checkWidth + 2
	begin := s.paint(f.State, fmt.Sprintf("%-*s", stateWidth, f.State)) + " " + fmt.Sprintf("%-*s", checkWidth, f.Check) + " "
	s.wrapped(begin, f.Evidence, indent)
	if f.Remedy != "" {
		s.wrapped(strings.Repeat(" ", indent)+"-> ", f.Remedy, indent+len("-> "))
	}
}

func (s *doctorScreen) tellSkipped() {
	if len(s.skipped) == 0 {
		return
	}
	s.heading(s.skipped[0])
	var names []string
	for _, f := range s.skipped {
		names = append(names, f.Check)
	}
	begin := s.paint(doctor.Skipped, fmt.Sprintf("%-*s", stateWidth, doctor.Skipped)) + " "
	evidence := s.skipped[0].Evidence
	if len(names) == 1 {
		s.wrapped(begin+fmt.Sprintf("%-*s ", checkWidth, names[0]), evidence, stateWidth+checkWidth+2)
	} else {
		s.wrapped(begin, strings.Join(names, ", ")+": "+evidence, stateWidth+1)
	}
	s.skipped = nil
}

func (s *doctorScreen) heading(f doctor.Finding) {
	if f.Group != s.group {
		heading := strings.ToUpper(f.Group)
		if s.group != "" {
			heading = "\n" + heading
		}
		s.line(heading)
		s.group = f.Group
	}
}

// wrapped writes a text behind a beginning of a width. Lines of the text itself
// stay lines.
func (s *doctorScreen) wrapped(begin, text string, indent int) {
	room := s.width - indent
	var line string
	flush := func() {
		s.line(begin + line)
		begin, line = strings.Repeat(" ", indent), ""
	}
	for part := range strings.Lines(strings.TrimSpace(text)) {
		for _, word := range strings.Fields(joblog.Harmless(part)) {
			if s.width > 0 && line != "" && len([]rune(line))+1+len([]rune(word)) > room {
				flush()
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		flush()
	}
	if strings.TrimSpace(text) == "" {
		flush()
	}
}

func (s *doctorScreen) line(text string) {
	_, err := fmt.Fprintln(s.out, strings.TrimRight(text, " "))
	s.err = errors.Join(s.err, err)
}

// summary ends the output with a line.
func (s *doctorScreen) summary(r doctor.Report) error {
	s.tellSkipped()
	var parts []string
	for _, one := range []struct {
		state doctor.State
		name  string
	}{{doctor.Failure, "failed"}, {doctor.Warning, "with a warning"}, {doctor.OK, "ok"}, {doctor.Skipped, "skipped"}} {
		if n := r.Count(one.state); n > 0 {
			parts = append(parts, s.paint(one.state, fmt.Sprintf("%d %s", n, one.name)))
		}
	}
	s.line("\n" + strings.Join(parts, ", "))
	return s.err
}
