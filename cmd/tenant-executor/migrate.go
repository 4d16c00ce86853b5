package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/migrate"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// runnerConfigPath is the config.toml of a runner that runs as a service.
const runnerConfigPath = "/etc/gitlab-runner/config.toml"

// migrateFlags are what migrate is told.
type migrateFlags struct {
	from, runner, output, write string
	overwrite                   bool
	options                     migrate.Options
}

func (a *app) migrateCommand() *cobra.Command {
	var f migrateFlags
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Show what a runner of the kubernetes executor needs to use this driver",
		Long: `migrate reads GitLab Runner's config.toml and prints, for each runner with a
section [runners.kubernetes]: what to write into its entry there, the driver's
configuration, and a table of every key that was found:

  carried                     the key means the same here
  carried, with a difference  the note tells which
  pointless here              the driver needs no such key, and why
  not possible                the custom executor cannot offer it, and why
  refused                     the driver does not take the value

It changes nothing. With --write FILE the driver's configuration goes to a file as
well; one that is there is written over only with --overwrite. No token is printed
or written, and values of services' variables are only written.

The exit code is 0 where the driver takes the configuration as it is, 1 where
something in it is still to be set or corrected, and 2 where nothing was made.`,
		Example: `  tenant-executor migrate
  tenant-executor migrate --config-file config.toml --runner "my runner" --write driver.toml

  # leave the settings where they are: the driver reads them there
  tenant-executor migrate --inherit`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.migrate(f) },
	}
	c.Flags().StringVar(&f.from, "config-file", runnerConfigPath, "the runner's config.toml `FILE`")
	c.Flags().StringVar(&f.runner, "runner", "", "`NAME` or short token of the one runner that is meant")
	c.Flags().StringVar(&f.output, "output", formatText, "`FORMAT` of the output: "+formatText+" or "+jsonFormat)
	c.Flags().StringVar(&f.write, "write", "", "write the driver's configuration to `FILE`, mode 0600")
	c.Flags().BoolVar(&f.overwrite, "overwrite", false, "with --write: replace a file that is there")
	c.Flags().BoolVar(&f.options.Inherit, "inherit", false, "have the driver read the settings from the runner's file")
	c.Flags().StringVar(&f.options.Program, "program", "/usr/local/bin/tenant-executor", "`PATH` of tenant-executor on the runner's host")
	return c
}

// formatText is the output of migrate for people.
const formatText = "text"

func (a *app) migrate(f migrateFlags) error {
	if f.output != formatText && f.output != jsonFormat {
		return &usageError{fmt.Errorf("--output is %q: use %s or %s", f.output, formatText, jsonFormat)}
	}
	if f.overwrite && f.write == "" {
		return &usageError{errors.New("--overwrite goes with --write FILE")}
	}
	if !path.IsAbs(f.from) && f.options.Inherit {
		return &usageError{fmt.Errorf("--config-file is %q: with --inherit write the whole path, the driver will read it there", f.from)}
	}
	file, err := readRunnerConfig(f.from)
	if err != nil {
		return &usageError{err}
	}
	f.options.Folder = path.Dir(settings.DefaultPath)
	all, err := migrate.Plan(file, f.runner, f.options)
	if err != nil {
		return &usageError{err}
	}
	if f.write != "" {
		if err := writeDriverConfig(f, all); err != nil {
			return err
		}
	}
	write := a.writeMigrations
	if f.output == jsonFormat {
		write = a.writeMigrationsJSON
	}
	if err := write(file.Name, all); err != nil {
		return failure.Wrap(failure.Internal, err, "writing the output")
	}
	for _, m := range all {
		if len(m.Missing) > 0 {
			return &quietExit{migrateIncomplete}
		}
	}
	return nil
}

// migrateIncomplete is the exit code of migrate where the driver would not take
// the configuration as it is.
const migrateIncomplete = 1

func writeDriverConfig(f migrateFlags, all []migrate.Migration) error {
	if len(all) > 1 && !f.options.Inherit {
		var names []string
		for _, m := range all {
			names = append(names, fmt.Sprintf("%q", m.Runner))
		}
		return &usageError{fmt.Errorf("%s has several runners (%s): with --write choose one of them with --runner", f.from, strings.Join(names, ", "))}
	}
	err := placeFile(f.write, all[0].DriverFile, f.overwrite)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &usageError{fmt.Errorf("%s is there already, and nothing was written; add --overwrite to replace it", f.write)}
	case err != nil:
		return &usageError{fmt.Errorf("the driver's configuration was not written: %w", err)}
	}
	return nil
}

// placeFile gives a name to a file once it is whole, so that the old one is
// there until the new one is.
func placeFile(name, text string, replace bool) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-"+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it is gone where it was renamed
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if replace {
		return os.Rename(file.Name(), name)
	}
	return os.Link(file.Name(), name)
}

func (a *app) writeMigrationsJSON(_ string, all []migrate.Migration) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}

func (a *app) writeMigrations(from string, all []migrate.Migration) error {
	for i, m := range all {
		if i > 0 {
			_, _ = fmt.Fprint(a.stdout, "\n\n")
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Runner %q (%s)\n\n", m.Runner, m.ShortToken)
		fmt.Fprintf(&b, "1. In its [[runners]] entry in %s, in place of executor; keys stand above the\n   entry's first table, tables at its end:\n\n%s\n", from, m.RunnerConfig)
		if m.Global != "" {
			fmt.Fprintf(&b, "   and at the top of that file:\n\n%s\n", m.Global)
		}
		fmt.Fprintf(&b, "2. In %s:\n\n%s\n", m.DriverPath, m.DriverConfig)
		writeLines(&b, "   Still to be set or corrected there:\n\n", m.Missing)
		writeLines(&b, "3. To look at:\n\n", m.Warnings)
		if _, err := fmt.Fprint(a.stdout, b.String()); err != nil {
			return err
		}
		table := show.Table{Coloured: show.Coloured(a.stdout, a.environment)}
		table.Head("KEY", "BECOMES", "NOTE")
		for _, row := range m.Keys {
			table.Add(show.Text(row.Key), show.Text(string(row.State)), show.Text(strings.ReplaceAll(row.Note, "\n", " ")))
		}
		if err := table.Write(a.stdout); err != nil {
			return err
		}
	}
	return nil
}

// writeLines writes a list with a heading, and nothing where it is empty.
func writeLines(b *strings.Builder, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString(heading)
	for _, line := range lines {
		b.WriteString("   - " + line + "\n")
	}
	b.WriteString("\n")
}
