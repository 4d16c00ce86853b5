package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/stages"
)

func (a *app) configCommand() *cobra.Command {
	return a.jobFlags(&cobra.Command{
		Use:   "config",
		Short: "Tell the runner how to set the job up (config_exec)",
		Long: `config prints JSON for the runner, and nothing else, on stdout: the driver's name,
the folders and the shell of the job, and job_env with the name of the Pod that
prepare is to make. It does not talk to the cluster.`,
		Example: `  # driver.toml and job.json as "tenant-executor --help" makes them for a local tenant cluster
  tenant-executor config --config driver.toml --job job.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.unattended()
			j, err := a.job()
			if err != nil {
				return err
			}
			if err := a.trust(j); err != nil {
				return err
			}
			s, err := a.settings()
			if err != nil {
				return err
			}
			host, err := os.Hostname()
			if err != nil {
				return failure.Wrap(failure.Internal, err, "the name of this host")
			}
			if c.Context().Err() != nil {
				return failure.New(failure.Interrupted, "the runner ended config")
			}
			return stages.Config(stages.ConfigParts{Settings: s, Job: j, Variables: a.environment, Version: version(), Hostname: host}, a.stdout)
		},
	})
}
