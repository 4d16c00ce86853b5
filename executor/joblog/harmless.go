package joblog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestLine is the most that a line of ours has, in bytes, and lastPart how much
// of that is its end: what the driver itself says often stands behind what it was
// told.
const (
	longestLine = 4 << 10
	lastPart    = 1 << 10
	leftOut     = " […] "
)

// Harmless is a text as one line of ours can have it, whoever wrote it: a
// container, a kubelet, a registry, the name of a job. It breaks no line, moves no
// cursor, opens no section of the job log, and has an end. Each line of a Log goes
// through it.
func Harmless(text string) string {
	text = printable(strings.Join(strings.Fields(text), " "))
	if len(text) <= longestLine {
		return text
	}
	head, tail := longestLine-lastPart-len(leftOut), len(text)-lastPart
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + leftOut + text[tail:]
}

// printable is a text without colours and without what a terminal or GitLab's
// reader of job logs acts on.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, WithoutColours(text))
	// GitLab opens and closes sections of a job log by these words
	// (build_trace_section_regex in lib/gitlab/regex.rb).
	return strings.NewReplacer("section_start:", "section_start ", "section_end:", "section_end ").Replace(text)
}

// WithoutColours drops the escape sequences that set colours.
func WithoutColours(text string) string {
	var kept strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if end < 0 || after[end] != 'm' {
			kept.WriteString("\x1b[")
			text = after
			continue
		}
		text = after[end+1:]
	}
}
