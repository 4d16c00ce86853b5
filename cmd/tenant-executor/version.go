package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and its date",
		Long: `version prints the program's version, the commit that it was built from and its
date, the version of Go that built it, and the system it is for.`,
		Example: `  tenant-executor version`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			commit, date := commit()
			_, err := fmt.Fprintf(a.stdout, "tenant-executor %s (commit %s of %s, %s, %s/%s)\n", version(), commit, date, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// unknown stands for what Go did not record in the build.
const unknown = "unknown"

// version is the module's version as Go recorded it in the build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return unknown
	}
	return info.Main.Version
}

// commit is the commit that the program was built from, and its date.
func commit() (id, date string) {
	id, date = unknown, unknown
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return id, date
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			id = s.Value
		case s.Key == "vcs.time":
			date = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			id += " with changes"
		}
	}
	return id, date
}
