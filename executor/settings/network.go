package settings

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DNS policies under the names that GitLab gives them.
const (
	DNSNone                    = "none"
	DNSDefault                 = "default"
	DNSClusterFirst            = "cluster-first"
	DNSClusterFirstWithHostNet = "cluster-first-with-host-net"
)

// Network is how the Pod finds names.
type Network struct {
	DNSPolicy   string      `toml:"dns_policy" example:"cluster-first" doc:"Where names are looked up: cluster-first, default (as the node does), cluster-first-with-host-net, or none, with dns_config alone. Without it the cluster decides, which means cluster-first."`
	DNSConfig   DNSConfig   `toml:"dns_config" doc:"Additions to what dns_policy makes of it."`
	HostAliases []HostAlias `toml:"host_aliases" doc:"Names that every container knows without a look-up."`
}

// DNSConfig is a Pod's resolv.conf.
type DNSConfig struct {
	Nameservers []string    `toml:"nameservers" example:"10.0.0.53" doc:"Addresses of name servers, three at most."`
	Searches    []string    `toml:"searches" example:"example.com" doc:"Domains in which short names are looked up."`
	Options     []DNSOption `toml:"options" doc:"Options of the resolver."`
}

// DNSOption is an option of the resolver.
type DNSOption struct {
	Name  string  `toml:"name" example:"ndots" doc:"The option's name."`
	Value *string `toml:"value" example:"1" doc:"The option's value, for those that have one."`
}

// HostAlias is a line of /etc/hosts.
type HostAlias struct {
	IP        string   `toml:"ip" example:"10.0.0.7" doc:"Address."`
	Hostnames []string `toml:"hostnames" example:"gitlab.example.com" doc:"Names for the address."`
}

func (n Network) check() []error {
	var all []error
	policies := []string{"", DNSClusterFirst, DNSDefault, DNSClusterFirstWithHostNet, DNSNone}
	if !slices.Contains(policies, n.DNSPolicy) {
		all = append(all, fmt.Errorf("kubernetes.dns_policy is %q: use one of %s", n.DNSPolicy, strings.Join(policies[1:], ", ")))
	}
	if n.DNSPolicy == DNSNone && len(n.DNSConfig.Nameservers) == 0 {
		all = append(all, fmt.Errorf("kubernetes.dns_policy is %q without kubernetes.dns_config.nameservers: no name would be found", n.DNSPolicy))
	}
	for _, address := range n.DNSConfig.Nameservers {
		all = append(all, checkAddress("kubernetes.dns_config.nameservers", address))
	}
	for _, option := range n.DNSConfig.Options {
		if option.Name == "" {
			all = append(all, fmt.Errorf("kubernetes.dns_config.options has an entry without a name"))
		}
	}
	for _, alias := range n.HostAliases {
		all = append(all, checkAddress("kubernetes.host_aliases", alias.IP))
		for _, name := range alias.Hostnames {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				all = append(all, fmt.Errorf("kubernetes.host_aliases has the name %q: %s", name, strings.Join(problems, "; ")))
			}
		}
	}
	return all
}

func checkAddress(key, text string) error {
	if _, err := netip.ParseAddr(text); err != nil {
		return fmt.Errorf("%s has %q: write an IP address", key, text)
	}
	return nil
}
