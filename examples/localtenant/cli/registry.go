package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func (c *common) registry() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Make the registry slow or unavailable",
		Args:  cobra.NoArgs,
		RunE:  help,
	}
	cmd.AddCommand(c.registrySet())
	return cmd
}

func (c *common) registrySet() *cobra.Command {
	var (
		delay time.Duration
		down  bool
	)
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set how the registry answers; what is not named stays",
		Long: `set makes the registry wait before each answer, or answer nothing but 503 Service
Unavailable, at both of its addresses.`,
		Example: `  localtenant registry set --delay 5s
  localtenant registry set --down
  localtenant registry set --delay 0s --down=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var change daemon.RegistryChange
			if cmd.Flags().Changed("delay") {
				change.Delay = &metav1.Duration{Duration: delay}
			}
			if cmd.Flags().Changed("down") {
				change.Down = &down
			}
			if change == (daemon.RegistryChange{}) {
				return errors.New("name --delay or --down; see `localtenant registry set --help`")
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			status, err := client.SetRegistry(cmd.Context(), change)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Out, registryText(status))
			return nil
		},
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "how long to wait before each answer")
	cmd.Flags().BoolVar(&down, "down", false, "answer 503 to everything")
	return cmd
}

func registryText(status daemon.RegistryStatus) string {
	switch {
	case status.Down:
		return status.Plain + ", answers 503 to everything"
	case status.Delay.Duration > 0:
		return fmt.Sprintf("%s, waits %s before each answer", status.Plain, status.Delay.Duration)
	}
	return status.Plain
}
