package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/deps"
)

func (c *common) deps() *cobra.Command {
	var install bool
	cmd := &cobra.Command{
		Use:   "deps",
		Short: "Name the Debian packages that are missing, or install them",
		Long: `deps prints the Debian packages that a tenant needs and this machine lacks, one
a line, and exits with 1 if there are any. With --install it gets them with
apt-get, as the machine has it configured.`,
		Example: `  localtenant deps
  localtenant deps --install`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			missing := deps.Missing(deps.Exists)
			if len(missing) == 0 {
				return nil
			}
			if !install {
				for _, name := range missing {
					fmt.Fprintln(c.Out, name)
				}
				return ExitError{Code: 1}
			}
			if err := requireRoot(); err != nil {
				return err
			}
			if err := deps.Install(cmd.Context(), missing, c.Environ(), c.Out); err != nil {
				return err
			}
			return deps.Check()
		},
	}
	cmd.Flags().BoolVar(&install, "install", false, "install what is missing with apt-get")
	return cmd
}
