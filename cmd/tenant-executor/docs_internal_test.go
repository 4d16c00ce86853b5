package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// Every command of the driver in the documents is one that there is, with flags
// and as many arguments as it takes.
func TestCommandsInTheDocuments(t *testing.T) {
	seen := 0
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fenced, language := false, ""
		for _, line := range strings.Split(string(text), "\n") {
			if after, fence := strings.CutPrefix(line, "```"); fence {
				fenced, language = !fenced, after
			}
			switch {
			case fenced && language == "toml":
				continue // comments name commands
			case fenced:
				line = "    " + line
			}
			for _, command := range commandsIn(line) {
				seen++
				if err := understood(command); err != nil {
					t.Errorf("%s: tenant-executor %s: %v", path, strings.Join(command, " "), err)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands were found in the documents", seen)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"../../README.md", "../../CHANGELOG.md"}
	err := filepath.WalkDir("../../docs", func(path string, entry fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") && filepath.Base(path) != "commands.md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// invocation is the driver's name with what follows on the line: in a block of
// code at the start of a command, or between backquotes.
var invocation = regexp.MustCompile("(?:^\\s{4,}|`|&& |; )(?:bin/)?tenant-executor ([a-z][^`]*)")

// quoted is one argument with blanks in it.
var quoted = regexp.MustCompile(`"[^"]*"`)

// commandsIn are the arguments of the commands on a line.
func commandsIn(line string) [][]string {
	var all [][]string
	for _, match := range invocation.FindAllStringSubmatch(line, -1) {
		rest, _, _ := strings.Cut(match[1], "#")
		rest, _, _ = strings.Cut(rest, " | ")
		rest, _, _ = strings.Cut(rest, ";")
		rest, _, _ = strings.Cut(rest, " > ")
		words := strings.Fields(quoted.ReplaceAllString(rest, "word"))
		if len(words) == 0 || strings.HasSuffix(words[0], ",") || strings.Contains(match[1], "…") {
			continue // prose, or a message
		}
		for i := range words {
			if words[i] = strings.Trim(words[i], `"'.,)`); words[i] == "JOB" {
				words[i] = "4711"
			}
		}
		all = append(all, words)
	}
	return all
}

// understood asks cobra, without running the command.
func understood(args []string) error {
	var out bytes.Buffer
	root := (&app{process: process{stdout: &out, stderr: &out}, environment: job.Environment{}, voice: joblog.New(&out)}).rootCommand()
	root.SetOut(&out)
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
