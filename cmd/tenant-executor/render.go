package main

import (
	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
)

func (a *app) renderCommand() *cobra.Command {
	h := &hand{app: a}
	c := &cobra.Command{
		Use:   "render",
		Short: "Show the Pod and the Secrets that a job becomes",
		Long: `render prints what prepare would make of a job: the Pod and the Secrets that go
with it, in the order in which they are made. The values of Secrets are masked. It
makes nothing on the cluster. The last part of the names is another for each
attempt.

The job's variables are taken from the environment, as CUSTOM_ENV_NAME=value: the
runner sets them for a stage.`,
		Example: `  tenant-executor render --config driver.toml --job job.json

  # what would the cluster say to it?
  tenant-executor render --config driver.toml --job job.json | kubectl apply --dry-run=server -f -`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.byPerson()
			d, err := a.driver(c.Context(), a.voice, false)
			if err != nil {
				return err
			}
			objects, err := d.Render(c.Context())
			if err != nil {
				return err
			}
			if h.format == show.JSONFormat {
				return h.format.Write(a.stdout, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
			}
			for _, o := range objects {
				if err := h.format.Write(a.stdout, o); err != nil {
					return err
				}
			}
			return nil
		},
	}
	h.outputFlag(c, show.YAMLFormat, show.JSONFormat)
	return a.jobFlags(c)
}
