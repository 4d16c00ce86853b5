package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/cluster"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/daemon"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/deps"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/images"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/sweep"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

// manifestTimeout bounds the time from a ready apiserver to applied manifests.
const manifestTimeout = time.Minute

// upFlags are the flags of up.
type upFlags struct {
	settings   gateway.Settings
	rbac       string
	components string
}

func (c *common) up() *cobra.Command {
	flags := upFlags{settings: gateway.Defaults()}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a tenant cluster with no nodes",
		Long: `up builds what is missing, starts the tenant in the background and returns when
its apiserver is ready and the manifest is applied. The files of an operator of
the driver are then in the tenant's folder access: cluster-url, ca.crt,
client.crt and client.key. For a tenant that runs already up only pushes the
images and applies the manifest again.

Tenants of different names run side by side.`,
		Example: `  localtenant up
  localtenant up --name quick --pods-per-node 1 --hold 20s --boot-time 0s
  localtenant up --rbac my-rbac.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.runUp(cmd.Context(), flags, cmd.Flags().Changed("rbac"))
		},
	}
	c.addSource(cmd)
	set := cmd.Flags()
	set.IntVar(&flags.settings.Ceiling, "ceiling", flags.settings.Ceiling, "most nodes that the gateway boots")
	set.IntVar(&flags.settings.PodsPerNode, "pods-per-node", flags.settings.PodsPerNode, "unfinished Pods that count for one node")
	set.DurationVar(&flags.settings.Hold.Duration, "hold", flags.settings.Hold.Duration, "how long nothing must have run before all nodes are dropped")
	set.DurationVar(&flags.settings.BootTime.Duration, "boot-time", flags.settings.BootTime.Duration, "how long a machine takes to boot before its node starts")
	set.BoolVar(&flags.settings.Paused, "paused", false, "start with a gateway that boots and drops nothing")
	set.StringVar(&flags.rbac, "rbac", "", "manifest to apply, \"\" for none (default examples/rbac.yaml of the repository)")
	set.StringVar(&flags.components, "components", "", "a components binary to use in place of building one")
	return cmd
}

// prepared is what up has ready before it touches the machine.
type prepared struct {
	components string
	images     []images.Image
	objects    []*unstructured.Unstructured
}

func (c *common) runUp(ctx context.Context, flags upFlags, rbacNamed bool) error {
	began := c.Now()
	t, err := c.tenant()
	if err != nil {
		return err
	}
	if err := errors.Join(requireRoot(), flags.settings.Check(), deps.Check()); err != nil {
		return err
	}
	ready, err := c.prepareUp(ctx, flags, rbacNamed)
	if err != nil {
		return err
	}
	unlock, err := tenant.LockRoot(t.Root())
	if err != nil {
		return err
	}
	defer unlock()
	running, err := c.isUp(ctx, t)
	if err != nil {
		return err
	}
	if running {
		return c.refresh(ctx, t, ready)
	}
	if err := c.clearRemains(ctx, t); err != nil {
		return fmt.Errorf("start tenant %q: %w", t.Name(), err)
	}
	if err := c.startTenant(ctx, t, flags, ready); err != nil {
		stopped := sweep.Stop(context.WithoutCancel(ctx), t, func(string) {})
		return errors.Join(fmt.Errorf("tenant %q did not start: %w\nits logs are in %s; `localtenant down%s` removes them", t.Name(), err, t.LogDir(), t.Flags()), stopped)
	}
	fmt.Fprintf(c.Out, "tenant %q is up after %s\n", t.Name(), took(c.Now().Sub(began)))
	return c.tellNext(ctx, t)
}

// refresh is up for a tenant that runs: images and manifest may be newer than
// its start, or that start may have been interrupted before it came to them.
func (c *common) refresh(ctx context.Context, t tenant.Tenant, ready prepared) error {
	fmt.Fprintf(c.Out, "tenant %q is up already: its nodes and the settings of its gateway stay as they are\n", t.Name())
	if err := c.fill(ctx, t, ready); err != nil {
		return err
	}
	return c.tellNext(ctx, t)
}

// prepareUp builds and reads what is needed, so that what can fail for lack of
// something fails before anything is started.
func (c *common) prepareUp(ctx context.Context, flags upFlags, rbacNamed bool) (prepared, error) {
	var ready prepared
	source, err := c.findSource()
	if err != nil {
		return ready, err
	}
	if !rbacNamed {
		flags.rbac = filepath.Join(filepath.Dir(source), "rbac.yaml")
	}
	if flags.rbac != "" {
		if ready.objects, err = readManifest(flags.rbac); err != nil {
			return ready, err
		}
	}
	if ready.components = flags.components; ready.components == "" {
		if ready.components, err = c.buildComponents(ctx, source); err != nil {
			return ready, err
		}
	}
	if ready.components, err = filepath.Abs(ready.components); err != nil {
		return ready, fmt.Errorf("components binary: %w", err)
	}
	if _, err := exec.LookPath(ready.components); err != nil {
		return ready, fmt.Errorf("components binary: %w", err)
	}
	ready.images, err = c.buildImages(ctx, source)
	return ready, err
}

func readManifest(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w: name another with --rbac", err)
	}
	defer file.Close()
	objects, err := cluster.ReadManifest(file)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", path, err)
	}
	return objects, nil
}

// fill puts the images into the registry and the objects into the cluster.
func (c *common) fill(ctx context.Context, t tenant.Tenant, ready prepared) error {
	began := c.Now()
	status, err := daemon.NewClient(t).Status(ctx)
	if err != nil {
		return err
	}
	if status.Details == nil {
		return fmt.Errorf("its daemon is %s", status.State)
	}
	if err := images.Push(ctx, status.Registry.Plain, ready.images); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "  %-45s %s\n", fmt.Sprintf("%d images pushed", len(ready.images)), took(c.Now().Sub(began)))
	return c.applyManifest(ctx, t, ready.objects)
}

// applyManifest applies the objects and waits until Pods can be created in
// their namespaces.
func (c *common) applyManifest(ctx context.Context, t tenant.Tenant, objects []*unstructured.Unstructured) error {
	began := c.Now()
	ctx, cancel := context.WithTimeout(ctx, manifestTimeout)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", t.AdminKubeconfig())
	if err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1
	if err := cluster.Apply(ctx, config, objects); err != nil {
		return err
	}
	watch, err := cluster.NewWatch(config, func() {})
	if err != nil {
		return err
	}
	for _, namespace := range append(cluster.Namespaces(objects), "default") {
		if err := watch.AwaitServiceAccount(ctx, namespace); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Out, "  %-45s %s\n", fmt.Sprintf("%d objects applied, namespaces ready", len(objects)), took(c.Now().Sub(began)))
	return nil
}

// tellNext says where things are and what to do with them.
func (c *common) tellNext(ctx context.Context, t tenant.Tenant) error {
	status, err := daemon.NewClient(t).Status(ctx)
	if err != nil || status.Details == nil {
		return err
	}
	suffix := t.Flags()
	fmt.Fprintf(c.Out, `
  cluster    %s, %d nodes
  access     %s
  kcp        %s, Cluster %s
  registry   %s, and with a login %s and %s (see status)
  images     %s/localtenant/NAME:%s, like busybox, debian, helper; localtenant build lists them

next:
  export KUBECONFIG=%s
  localtenant driver-config%s > driver.toml
  localtenant status%s
  localtenant down%s
`, status.URL, len(status.Nodes), status.AccessDir, status.KCP.Kubeconfig, status.KCP.Cluster,
		status.Registry.Plain, status.Registry.Auth, status.Registry.Token, status.Registry.Plain, images.Tag,
		status.Kubeconfig, suffix, suffix, suffix)
	return nil
}
