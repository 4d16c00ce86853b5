// Package cli is the verbs of the command localtenant, a file each.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/binaries"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// Environment is what the command gets from its surroundings.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal tells whether Out is one.
	Terminal bool
	Getenv   func(string) string
	Environ  func() []string
	Now      func() time.Time
}

// ExitError ends the program with a code and no further message.
type ExitError struct{ Code int }

// Error implements error.
func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// common are the flags of every verb.
type common struct {
	Environment
	name   string
	root   string
	source string
}

// New makes the command with all its verbs.
func New(env Environment) *cobra.Command {
	c := &common{Environment: env}
	root := &cobra.Command{
		Use:   "localtenant",
		Short: "A real Kubernetes on this machine, whose nodes boot on demand from zero",
		Long: `localtenant runs a tenant cluster on one Linux machine: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler as processes of the host, and nodes
with a real kubelet, containerd and runc in namespaces of their own. A gateway
boots nodes when Pods need them and drops all of them when nothing has run for a
while. A registry on the host holds images for jobs. A second API, the kcp side,
tells where the cluster is.

It needs root, Debian's containerd, runc and CNI plugins (localtenant deps), and
no network.`,
		Example: `  localtenant deps --install       # once: Debian packages
  localtenant build                # once: Kubernetes, some minutes
  localtenant up                   # a cluster with no nodes
  export KUBECONFIG=$(localtenant kubeconfig)
  localtenant driver-config > driver.toml
  localtenant status
  localtenant node list
  localtenant down                 # and nothing is left
  localtenant leftovers            # see for yourself

  localtenant up --name quick --pods-per-node 1 --hold 20s --boot-time 0s
  localtenant gateway set --name quick --ceiling 2
  localtenant node kill --name quick quick-node-4c2f7a`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          help,
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	flags := root.PersistentFlags()
	flags.StringVar(&c.name, "name", tenant.DefaultName, "name of the tenant")
	flags.StringVar(&c.root, "state-root", tenant.DefaultRoot, "folder under which every tenant has its state folder")
	root.AddGroup(
		&cobra.Group{ID: "cluster", Title: "The cluster:"},
		&cobra.Group{ID: "change", Title: "While it runs:"},
		&cobra.Group{ID: "inside", Title: "Started by the other verbs:"},
	)
	grouped := func(group string, verbs ...*cobra.Command) {
		for _, verb := range verbs {
			verb.GroupID = group
			root.AddCommand(verb)
		}
	}
	grouped("cluster", c.deps(), c.build(), c.up(), c.down(), c.status(), c.kubeconfig(), c.driverConfig(), c.leftovers())
	grouped("change", c.node(), c.apiserver(), c.kcp(), c.gateway(), c.registry(), c.fault())
	grouped("inside", c.serve(), c.guest())
	return root
}

func (c *common) tenant() (tenant.Tenant, error) { return tenant.New(c.root, c.name) }

func (c *common) client() (*daemon.Client, error) {
	t, err := c.tenant()
	if err != nil {
		return nil, err
	}
	return daemon.NewClient(t), nil
}

// addSource adds the flag that names the source folder.
func (c *common) addSource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.source, "source", "", "the folder examples/localtenant of the repository (default: found from here and from this program upwards)")
}

func (c *common) findSource() (string, error) {
	if c.source != "" {
		return binaries.FindSource(c.source)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("source folder: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("source folder: %w", err)
	}
	return binaries.FindSource("", here, filepath.Dir(self))
}

// help is what a verb with verbs below it does by itself. As a verb that runs it
// refuses unknown words, which cobra would let pass otherwise.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

func requireRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("this needs root: it makes namespaces, mounts and network links; try again with sudo")
	}
	return nil
}

// took is a duration for people.
func took(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
