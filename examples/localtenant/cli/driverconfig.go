package cli

import (
	"fmt"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/images"
)

// driverNamespace is the one that examples/rbac.yaml gives the driver rights in.
const driverNamespace = "ci"

// driverConfig is the part of the driver's configuration that this tenant
// decides. The driver has a default for all else.
type driverConfig struct {
	Cluster    driverCluster `toml:"cluster"`
	Kubernetes driverPods    `toml:"kubernetes"`
}

type driverCluster struct {
	URL      string `toml:"url"`
	CAFile   string `toml:"ca_file"`
	CertFile string `toml:"cert_file"`
	KeyFile  string `toml:"key_file"`
}

type driverPods struct {
	Namespace   string `toml:"namespace"`
	Image       string `toml:"image"`
	HelperImage string `toml:"helper_image"`
}

func (c *common) driverConfig() *cobra.Command {
	return &cobra.Command{
		Use:   "driver-config",
		Short: "Print a configuration of tenant-executor for this tenant",
		Long: `driver-config prints a complete configuration file of tenant-executor for this
tenant: its URL, the driver's certificate, the namespace of examples/rbac.yaml and
images of the tenant's registry.`,
		Example: `  localtenant driver-config > driver.toml
  tenant-executor prepare --config driver.toml --job job.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			status, err := client.Status(cmd.Context())
			if err != nil {
				return err
			}
			if status.Details == nil {
				return fmt.Errorf("tenant %q does not run; `localtenant up` starts it", status.Name)
			}
			text, err := toml.Marshal(newDriverConfig(status.Details))
			if err != nil {
				return fmt.Errorf("write the driver's configuration: %w", err)
			}
			_, err = c.Out.Write(text)
			return err
		},
	}
}

func newDriverConfig(details *daemon.Details) driverConfig {
	access := func(name string) string { return filepath.Join(details.AccessDir, name) }
	image := func(name string) string { return details.Registry.Plain + "/localtenant/" + name + ":" + images.Tag }
	return driverConfig{
		Cluster:    driverCluster{URL: details.URL, CAFile: access("ca.crt"), CertFile: access("client.crt"), KeyFile: access("client.key")},
		Kubernetes: driverPods{Namespace: driverNamespace, Image: image("busybox"), HelperImage: image("helper")},
	}
}
