package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/examples/documents"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// session is what a person does at a terminal: commands of the documents, one
// after the other, in one shell.
type session struct {
	// parts are what is typed in, in this order.
	parts []part
	// files are there already.
	files []file
	// config are the sections whose TOML is the driver's configuration.
	config []string
	// instead is what the test has in place of what the documents say.
	instead []substitution
	// types is what a person types while a command runs.
	types []reaction
	// says is what a command prints. Each has to end well anyway.
	says []reaction
}

// part is the commands of a section: those in its blocks, or those in its prose
// and tables.
type part struct {
	section string
	inline  bool
}

func blocks(section string) part { return part{section: section} }
func prose(section string) part  { return part{section: section, inline: true} }

// file has a text with values of the test in it.
type file struct{ name, text string }

// substitution is a part of a command, which ends with its line, or of the
// configuration, and what the test has in its place. {name} is a value of the test.
type substitution struct{ documented, here string }

// reaction is a text that belongs to a documented command.
type reaction struct{ command, text string }

// elsewhere is a command that no session runs, for a reason.
type elsewhere struct {
	command, reason string
	// file runs it instead, by a line that holds the text.
	file, holds string
}

// typed are the commands of a session.
func (s session) typed(all map[string]documents.Document) []documents.Command {
	var typed []documents.Command
	for _, p := range s.parts {
		name, _, _ := strings.Cut(p.section, "#")
		for _, c := range all[name].Commands {
			if c.Section == p.section && c.Inline == p.inline && !runElsewhere(c.Text) {
				typed = append(typed, c)
			}
		}
	}
	return typed
}

// driverConfig is the TOML of the sections that a session names for it.
func (s session) driverConfig(all map[string]documents.Document) string {
	var text strings.Builder
	for _, section := range s.config {
		name, _, _ := strings.Cut(section, "#")
		for _, f := range all[name].Fences {
			if f.Section == section && f.Language == "toml" {
				text.WriteString(f.Text)
			}
		}
	}
	return text.String()
}

// here is a documented text as the test runs it. It leaves in found what it has
// replaced.
func (s session) here(text string, found map[string]bool) string {
	for _, sub := range s.instead {
		if strings.Contains(text, sub.documented) {
			found[sub.documented] = true
			text = strings.ReplaceAll(text, sub.documented, sub.here)
		}
	}
	return text
}

func runElsewhere(command string) bool {
	for _, e := range runsElsewhere() {
		if e.command == command {
			return true
		}
	}
	return false
}

func theDocuments(t *testing.T) (root string, all map[string]documents.Document) {
	t.Helper()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = documents.All(root); err != nil {
		t.Fatal(err)
	}
	return root, all
}

// Every command in the documents is run: by a session here, or elsewhere for a
// reason. In prose a command may be named by its beginning.
func TestEveryDocumentedCommandIsRun(t *testing.T) {
	_, all := theDocuments(t)
	at := map[documents.Command]bool{}
	var texts []string
	for _, s := range sessions() {
		for _, c := range s.typed(all) {
			at[c] = true
			texts = append(texts, c.Text)
		}
	}
	named := func(text string) bool {
		for _, full := range texts {
			if strings.HasPrefix(full+" ", text+" ") {
				return true
			}
		}
		return false
	}
	seen := 0
	for _, d := range all {
		for _, c := range d.Commands {
			seen++
			if !at[c] && !runElsewhere(c.Text) && !(c.Inline && named(c.Text)) {
				t.Errorf("%s, line %d: no test runs %q: add it to a session, or to what runs elsewhere", c.Section, c.Line, c.Text)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands were found in the documents", seen)
	}
}

// What the sessions say of the documents is still there.
func TestSessionsFollowTheDocuments(t *testing.T) {
	_, all := theDocuments(t)
	for name, s := range sessions() {
		found := map[string]bool{}
		s.here(s.driverConfig(all), found)
		for _, p := range s.parts {
			if (session{parts: []part{p}}).typed(all) == nil {
				t.Errorf("%s: %s has no commands", name, p.section)
			}
		}
		for _, c := range s.typed(all) {
			s.here(c.Text+"\n", found)
			found["$ "+c.Text] = true
		}
		for _, sub := range s.instead {
			if !found[sub.documented] {
				t.Errorf("%s: nothing says %q any more", name, sub.documented)
			}
		}
		for _, r := range slices.Concat(s.types, s.says) {
			if !found["$ "+r.command] {
				t.Errorf("%s: there is no %q any more", name, r.command)
			}
		}
	}
}

// What is said to be run elsewhere is.
func TestOthersRunTheRest(t *testing.T) {
	root, all := theDocuments(t)
	documented := map[string]bool{}
	for _, d := range all {
		for _, c := range d.Commands {
			documented[c.Text] = true
		}
	}
	for _, e := range runsElsewhere() {
		if !documented[e.command] || e.reason == "" {
			t.Errorf("%q: no document has it, or there is no reason", e.command)
		}
		if e.file == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, e.file))
		if err != nil || !strings.Contains(string(text), e.holds) {
			t.Errorf("%q: %s does not hold %q (%v)", e.command, e.file, e.holds, err)
		}
	}
}
