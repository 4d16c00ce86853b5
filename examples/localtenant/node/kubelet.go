package node

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/pki"
)

// writeKubelet writes the kubelet's configuration and its certificates.
func (n *Node) writeKubelet() error {
	own, err := n.issuer.Issue(pki.Subject{
		// The name and group that the node authorizer wants.
		CommonName:   "system:node:" + n.name,
		Organization: []string{"system:nodes"},
		Names:        []string{n.name},
		Addresses:    []netip.Addr{n.plan.Node(n.slot)},
	})
	if err != nil {
		return err
	}
	if err := own.Write(n.file("kubelet.crt"), n.file("kubelet.key")); err != nil {
		return err
	}
	if err := os.WriteFile(n.file("ca.crt"), n.issuer.Certificate(), 0o644); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := pki.WriteKubeconfig(n.file("kubelet.kubeconfig"), n.tenant.Name(), "https://"+n.door, n.issuer.Certificate(), own); err != nil {
		return err
	}
	text, err := yaml.Marshal(n.kubeletConfiguration())
	if err != nil {
		return fmt.Errorf("write the kubelet's configuration: %w", err)
	}
	if err := os.WriteFile(n.file("kubelet.yaml"), text, 0o644); err != nil {
		return fmt.Errorf("write the kubelet's configuration: %w", err)
	}
	return nil
}

func (n *Node) kubeletConfiguration() kubelet.KubeletConfiguration {
	resolv := n.file("resolv.conf")
	return kubelet.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: kubelet.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		Authentication: kubelet.KubeletAuthentication{
			X509:      kubelet.KubeletX509Authentication{ClientCAFile: n.file("ca.crt")},
			Webhook:   kubelet.KubeletWebhookAuthentication{Enabled: new(true)},
			Anonymous: kubelet.KubeletAnonymousAuthentication{Enabled: new(false)},
		},
		Authorization:     kubelet.KubeletAuthorization{Mode: kubelet.KubeletAuthorizationModeWebhook},
		TLSCertFile:       n.file("kubelet.crt"),
		TLSPrivateKeyFile: n.file("kubelet.key"),

		ContainerRuntimeEndpoint: "unix://" + containerdSocket,
		CgroupDriver:             "cgroupfs",
		CgroupRoot:               n.tenant.NodeCgroup(n.name),
		FailCgroupV1:             new(false),
		FailSwapOn:               new(false),
		EnforceNodeAllocatable:   []string{"pods"},
		OOMScoreAdj:              new(int32(0)),
		MakeIPTablesUtilChains:   new(false),

		// The default lies in /usr, where a node writes nothing.
		VolumePluginDir: "/var/lib/kubelet/volume-plugins",

		// The tenant's resolver answers there, before any Pod is: as one on the
		// node itself does. It knows the machine's name and nothing of services.
		ClusterDNS:     []string{n.plan.Host().String()},
		ClusterDomain:  "cluster.local",
		ResolverConfig: &resolv,

		// All nodes share the machine's disk. It must not make one clean up
		// or evict because of what others put there.
		ImageGCHighThresholdPercent: new(int32(100)),
		ImageGCLowThresholdPercent:  new(int32(99)),
		EvictionHard: map[string]string{
			"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%",
		},

		NodeStatusUpdateFrequency: metav1.Duration{Duration: 2 * time.Second},
		NodeLeaseDurationSeconds:  10,
	}
}
