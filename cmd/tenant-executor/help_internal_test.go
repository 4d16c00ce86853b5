package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// No two commands of one level have a name in common, nor two flags of one
// command.
func TestNamesAreUnique(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		seen := map[string]bool{}
		for _, one := range c.Commands() {
			for _, name := range append([]string{one.Name()}, one.Aliases...) {
				if seen[name] {
					t.Errorf("%s has two commands %q", c.CommandPath(), name)
				}
				seen[name] = true
			}
			look(one)
		}
	}
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	look(root)
}

// Every command says at length what it does, and shows how it is called.
func TestEveryCommandHelps(t *testing.T) {
	var out bytes.Buffer
	a := &app{process: process{stdout: &out, stderr: &out}, environment: job.Environment{}}
	root := a.rootCommand()
	seen := 0
	for _, c := range root.Commands() {
		seen++
		if len(c.Long) < 80 || !strings.Contains(c.Example, "tenant-executor "+c.Name()) {
			t.Errorf("%s: the help lacks a description or an example:\n%s\n%s", c.Name(), c.Long, c.Example)
		}
		for line := range strings.Lines(c.Long) {
			if len(line) > 92 {
				t.Errorf("%s: the help has a line of %d characters: %s", c.Name(), len(line), line)
			}
		}
		if c.GroupID == "" && c.Name() != "version" {
			t.Errorf("%s stands in no group of the help", c.Name())
		}
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", c.Name(), f.Name)
			}
		})
	}
	if seen < 10 {
		t.Errorf("only %d commands were seen", seen)
	}
}
