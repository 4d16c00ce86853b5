package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
)

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", "text or json")
}

func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output %q: use text or json", output)
	}
	return nil
}

func (c *common) printJSON(value any) error {
	encoder := json.NewEncoder(c.Out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	return nil
}

// shows is a verb that shows a part of a tenant that runs: as it is in JSON, or
// as print has it for people.
func shows[Part any](c *common, use, short string, part func(*daemon.Details) Part, print func(Part) error) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			details, err := c.details(cmd)
			if err != nil {
				return err
			}
			if output == "json" {
				return c.printJSON(part(details))
			}
			return print(part(details))
		},
	}
	addOutput(cmd, &output)
	return cmd
}

// details is the status of a tenant that must run.
func (c *common) details(cmd *cobra.Command) (*daemon.Details, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	status, err := client.Status(cmd.Context())
	if err != nil {
		return nil, err
	}
	if status.Details == nil {
		return nil, client.NotRunning()
	}
	return status.Details, nil
}
