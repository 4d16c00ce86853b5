package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func (c *common) registry() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Make the registry slow, rate limited or unavailable, and mend it",
		Args:  cobra.NoArgs,
		RunE:  help,
	}
	cmd.AddCommand(c.registrySet(), c.registryMend())
	return cmd
}

func (c *common) registrySet() *cobra.Command {
	var values struct {
		delay                     time.Duration
		down, refuse, rateLimited bool
		bytesPerSecond            int64
		repositories              string
	}
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set how the registry answers; what is not named stays",
		Long: `set makes the registry misbehave at all of its addresses: wait before each answer,
send blobs slowly, answer 429 Too Many Requests to each GET of a manifest as Docker
Hub does at its limit, answer 503 Service Unavailable to everything, or refuse
connections.

With --repositories the faults concern those alone. A node that boots needs
localtenant/pause, so without it no Pod starts there at all.`,
		Example: `  localtenant registry set --delay 5s
  localtenant registry set --rate-limited --repositories 'localtenant/redis'
  localtenant registry set --bytes-per-second 100000
  localtenant registry set --down
  localtenant registry set --down=false
  localtenant registry mend`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var change daemon.RegistryChange
			for flag, take := range map[string]func(){
				"delay":            func() { change.Delay = &metav1.Duration{Duration: values.delay} },
				"down":             func() { change.Down = &values.down },
				"refuse":           func() { change.Refuse = &values.refuse },
				"rate-limited":     func() { change.RateLimited = &values.rateLimited },
				"bytes-per-second": func() { change.BytesPerSecond = &values.bytesPerSecond },
				"repositories":     func() { change.Repositories = &values.repositories },
			} {
				if cmd.Flags().Changed(flag) {
					take()
				}
			}
			if change == (daemon.RegistryChange{}) {
				return errors.New("name at least one setting, for example --down; see `localtenant registry set --help`")
			}
			return c.changeRegistry(cmd, change)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&values.delay, "delay", 0, "how long to wait before each answer")
	flags.BoolVar(&values.down, "down", false, "answer 503 to everything")
	flags.BoolVar(&values.refuse, "refuse", false, "refuse connections, and cut those that are open")
	flags.BoolVar(&values.rateLimited, "rate-limited", false, "answer 429 to each GET of a manifest")
	flags.Int64Var(&values.bytesPerSecond, "bytes-per-second", 0, "how fast each blob is sent; 0 is as fast as it can be")
	flags.StringVar(&values.repositories, "repositories", "", "pattern of the repositories that are concerned, like 'localtenant/*'; \"\" for all requests")
	return cmd
}

func (c *common) registryMend() *cobra.Command {
	return &cobra.Command{
		Use:     "mend",
		Short:   "End all faults of the registry",
		Example: `  localtenant registry mend`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.changeRegistry(cmd, daemon.RegistryChange{Mend: true})
		},
	}
}

func (c *common) changeRegistry(cmd *cobra.Command, change daemon.RegistryChange) error {
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
}

// registryText is the open address and what is wrong there.
func registryText(status daemon.RegistryStatus) string {
	var faults []string
	for _, fault := range []struct {
		there bool
		text  string
	}{
		{status.Refuse, "refuses connections"},
		{status.Down, "answers 503 to everything"},
		{status.RateLimited, "answers 429 to each GET of a manifest"},
		{status.Delay.Duration > 0, fmt.Sprintf("waits %s before each answer", status.Delay.Duration)},
		{status.BytesPerSecond > 0, fmt.Sprintf("sends %d bytes per second", status.BytesPerSecond)},
	} {
		if fault.there {
			faults = append(faults, fault.text)
		}
	}
	if len(faults) == 0 {
		return status.Plain
	}
	text := status.Plain + ", " + strings.Join(faults, ", ")
	if status.Repositories != "" {
		text += ", for " + status.Repositories + " alone"
	}
	return text
}
