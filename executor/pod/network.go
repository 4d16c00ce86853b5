package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// resolve says how the Pod finds names. Aliases of the settings come after
// those that other steps have made, of services for one.
func (b *builder) resolve() error {
	n := b.Settings.Network
	b.Pod.Spec.DNSPolicy = map[string]corev1.DNSPolicy{
		settings.DNSNone:                    corev1.DNSNone,
		settings.DNSDefault:                 corev1.DNSDefault,
		settings.DNSClusterFirst:            corev1.DNSClusterFirst,
		settings.DNSClusterFirstWithHostNet: corev1.DNSClusterFirstWithHostNet,
	}[n.DNSPolicy]
	c := n.DNSConfig
	if len(c.Nameservers)+len(c.Searches)+len(c.Options) > 0 {
		b.Pod.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: c.Nameservers, Searches: c.Searches}
		for _, option := range c.Options {
			b.Pod.Spec.DNSConfig.Options = append(b.Pod.Spec.DNSConfig.Options, corev1.PodDNSConfigOption{Name: option.Name, Value: option.Value})
		}
	}
	for _, alias := range n.HostAliases {
		b.Pod.Spec.HostAliases = append(b.Pod.Spec.HostAliases, corev1.HostAlias{IP: alias.IP, Hostnames: alias.Hostnames})
	}
	return nil
}
