package main

import (
	"github.com/spf13/cobra"
)

// version says that this is not GitLab's program.
const version = "localtenant stand-in 1"

// newRoot makes the command line.
func newRoot(h host, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "gitlab-runner-helper",
		Short:         "Stand-in for GitLab's helper program on a local tenant cluster",
		Long:          "Stand-in for GitLab's helper program on a local tenant cluster. Use GitLab's own helper image on a real one.",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceErrors: true, // main shows them in the manner of a job log
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(args)
	root.SetOut(h.stdout)
	root.SetErr(h.console.out)
	root.AddCommand(
		newArtifactsUploader(h),
		newArtifactsDownloader(h),
		newCacheArchiver(h),
		newCacheExtractor(h),
	)
	return root
}

// acceptUnused takes flags of the real program that the stage scripts may pass
// and this one has no use for.
func acceptUnused(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.Flags().StringArray(name, nil, "accepted and not used by this stand-in")
	}
}

// acceptUnusedSwitches is acceptUnused for flags without a value.
func acceptUnusedSwitches(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.Flags().Bool(name, false, "accepted and not used by this stand-in")
	}
}
