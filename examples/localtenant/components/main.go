// Command components is every program of a Kubernetes cluster in one binary:
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubelet, and
// the generic control plane that the kcp side is made of.
// The first argument (or the name it is called by) picks the program.
//
// One binary instead of five shares what the five have in common, which is
// most of it: it links once and stays one file in the cache. It has a go.mod
// of its own so that none of its requirements reach the driver.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args
	if _, known := programs()[name]; !known && len(os.Args) > 1 {
		name, args = os.Args[1], os.Args[1:]
	}
	run, known := programs()[name]
	if !known {
		fmt.Fprintf(os.Stderr, "components: %q is none of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, generic-controlplane\n", name)
		os.Exit(2)
	}
	os.Args = args
	os.Exit(run())
}

// programs maps the name of each component to what runs it and gives its exit
// code.
func programs() map[string]func() int {
	return map[string]func() int{
		"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
		"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
		"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
		"generic-controlplane":    func() int { return cli.Run(genericControlPlane()) },
		"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	}
}
