package main

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/documents"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// What people follow is run by the end-to-end tests. The commands in all else,
// the changelog, the references and the help, are ones that there are, with flags
// and as many arguments as they take.
func TestCommandsThatNobodyRuns(t *testing.T) {
	named := map[string][]string{}
	for _, path := range []string{"CHANGELOG.md", "docs/reference/configuration.md", "docs/reference/failures.md", "docs/reference/parity.md"} {
		d, err := documents.Read("../..", path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Commands {
			named[path] = append(named[path], c.Text)
		}
	}
	for _, c := range newRoot().Commands() {
		named["the help of "+c.Name()] = strings.Split(c.Example, "\n")
	}
	seen := 0
	for where, commands := range named {
		for _, command := range commands {
			if args := arguments(command); args != nil {
				seen++
				if err := understood(args); err != nil {
					t.Errorf("%s: %s: %v", where, command, err)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d commands were found", seen)
	}
}

// quoted is one argument with blanks in it.
var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// arguments are those of a command of the driver, nil for another program's.
func arguments(command string) []string {
	command, _, _ = strings.Cut(quoted.ReplaceAllString(command, "word"), " | ")
	command, _, _ = strings.Cut(command, " > ")
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "tenant-executor" {
		return nil
	}
	return words[1:]
}

func newRoot() *cobra.Command {
	var out bytes.Buffer
	root := (&app{process: process{stdout: &out, stderr: &out}, environment: job.Environment{}, voice: joblog.New(&out)}).rootCommand()
	root.SetOut(&out)
	return root
}

// understood asks cobra, without running the command.
func understood(args []string) error {
	root := newRoot()
	found, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if found == root {
		return &usageError{fs.ErrNotExist}
	}
	found.RunE, found.Run = func(*cobra.Command, []string) error { return nil }, nil
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}
