package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

const commandsPath = "../../docs/reference/commands.md"

// The command reference is what --help says, of every command; each has an
// example.
func TestCommandReference(t *testing.T) {
	root := (&app{voice: joblog.New(&bytes.Buffer{})}).rootCommand()
	root.InitDefaultHelpFlag()
	var b strings.Builder
	b.WriteString("# Command reference\n\n<!-- Made by cmd/tenant-executor; \"make update\" writes it again. -->\n")
	describe(t, &b, root)
	// The tests of this package are run with the built program, whose flag it is.
	if update := os.Getenv("UPDATE_REFERENCE"); update != "" {
		if err := os.WriteFile(commandsPath, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(commandsPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s is not what the commands say; run make update (-want +got):\n%s", commandsPath, diff)
	}
}

func describe(t *testing.T, b *strings.Builder, c *cobra.Command) {
	t.Helper()
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```text\n%s\n```\n", c.CommandPath(), c.Short, strings.TrimSpace(c.UseLine()))
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", paragraphs(c.Long))
	}
	if c.Runnable() && c.Example == "" && c.Name() != "version" {
		t.Errorf("%s has no example", c.CommandPath())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.Trim(unindent(c.Example), "\n"))
	}
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n```text\n%s```\n", flags)
	}
	for _, sub := range c.Commands() {
		describe(t, b, sub)
	}
}

// paragraphs keeps what is indented in a help text as it is.
func paragraphs(text string) string {
	var out []string
	code := false
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != code && (line != "" || !code) {
			out = append(out, "```")
			if indented {
				out[len(out)-1] = "```text"
			}
			code = indented
		}
		out = append(out, line)
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
