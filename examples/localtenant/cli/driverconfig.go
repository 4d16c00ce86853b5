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
	Tenant     driverTenant  `toml:"tenant"`
	Kubernetes driverPods    `toml:"kubernetes"`
}

type driverCluster struct {
	URL                string `toml:"url,omitempty"`
	DiscoverKubeconfig string `toml:"discover_kubeconfig,omitempty"`
	DiscoverCluster    string `toml:"discover_cluster,omitempty"`
	CAFile             string `toml:"ca_file"`
	CertFile           string `toml:"cert_file"`
	KeyFile            string `toml:"key_file"`
}

// driverTenant is what the gateway has now; the driver cannot ask it.
type driverTenant struct {
	Ceiling     int    `toml:"ceiling"`
	PodsPerNode int    `toml:"pods_per_node"`
	Hold        string `toml:"hold"`
}

type driverPods struct {
	Namespace   string `toml:"namespace"`
	Image       string `toml:"image"`
	HelperImage string `toml:"helper_image"`
}

func (c *common) driverConfig() *cobra.Command {
	var discover bool
	cmd := &cobra.Command{
		Use:   "driver-config",
		Short: "Print a configuration of tenant-executor for this tenant",
		Long: `driver-config prints a complete configuration file of tenant-executor for this
tenant: its URL, the driver's certificate, the gateway's settings, the namespace of
examples/rbac.yaml and images of the tenant's registry. With --discover the driver is to look the URL up
on the kcp side, and so follows when it changes.`,
		Example: `  localtenant driver-config > driver.toml
  tenant-executor prepare --config driver.toml --job job.json
  localtenant driver-config --discover > driver.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			details, err := c.details(cmd)
			if err != nil {
				return err
			}
			text, err := toml.Marshal(newDriverConfig(details, discover))
			if err != nil {
				return fmt.Errorf("write the driver's configuration: %w", err)
			}
			_, err = c.Out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&discover, "discover", false, "have the driver find the URL on the kcp side")
	return cmd
}

func newDriverConfig(details *daemon.Details, discover bool) driverConfig {
	access := func(name string) string { return filepath.Join(details.AccessDir, name) }
	image := func(name string) string { return details.Registry.Plain + "/localtenant/" + name + ":" + images.Tag }
	config := driverConfig{
		Cluster: driverCluster{CAFile: access("ca.crt"), CertFile: access("client.crt"), KeyFile: access("client.key")},
		Tenant: driverTenant{
			Ceiling: details.Gateway.Ceiling, PodsPerNode: details.Gateway.PodsPerNode, Hold: details.Gateway.Hold.Duration.String(),
		},
		Kubernetes: driverPods{Namespace: driverNamespace, Image: image("busybox"), HelperImage: image("helper")},
	}
	if discover {
		config.Cluster.DiscoverKubeconfig, config.Cluster.DiscoverCluster = details.KCP.Kubeconfig, details.KCP.Cluster
	} else {
		config.Cluster.URL = details.URL
	}
	return config
}
