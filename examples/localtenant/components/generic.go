package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	generic "k8s.io/kubernetes/pkg/controlplane/apiserver/samples/generic/server"
)

// genericControlPlane is kube-apiserver without Pods, nodes and all else that
// is about containers: custom resources, discovery, RBAC, watches. kcp is built
// from the same code.
//
// Its own command exists in Kubernetes as a sample (k8s.io/kubernetes v1.37.2,
// pkg/controlplane/apiserver/samples/generic/server/server.go). It is put
// together again here for one value: the sample counts three servers, and so
// waits 5 seconds before it serves a new kind
// (k8s.io/apiextensions-apiserver v0.37.2, pkg/apiserver/customresource_handler.go).
func genericControlPlane() *cobra.Command {
	opts := generic.NewOptions()
	cmd := &cobra.Command{
		Use:          "generic-controlplane",
		Short:        "An apiserver for custom resources, without containers",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := logsapi.ValidateAndApply(opts.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return fmt.Errorf("set up the log: %w", err)
			}
			return serveGeneric(genericapiserver.SetupSignalContext(), opts)
		},
	}
	var sets cliflag.NamedFlagSets
	opts.AddFlags(&sets)
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	return cmd
}

func serveGeneric(ctx context.Context, opts *options.Options) error {
	completed, err := opts.Complete(ctx, []string{}, []net.IP{})
	if err != nil {
		return err
	}
	if err := errors.Join(completed.Validate()...); err != nil {
		return err
	}
	config, err := generic.NewConfig(completed)
	if err != nil {
		return err
	}
	// One server, and nobody to wait for.
	config.APIExtensions.ExtraConfig.MasterCount = 1
	ready, err := config.Complete()
	if err != nil {
		return err
	}
	chain, err := generic.CreateServerChain(ready)
	if err != nil {
		return err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}
