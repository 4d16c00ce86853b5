// Package network lays the cables of a tenant: a bridge on the host, a cable
// to each node, routes to the Pods, and the door to the apiserver.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// MaxSlots is the most nodes that a tenant can have at one time.
const MaxSlots = 200

// Plan is the addresses of a tenant. Everything lies in one /16: the host and
// the nodes in the first /24, the Pods of the node in slot n in the n-th /24,
// the services at the end.
type Plan struct {
	prefix netip.Prefix
}

// NewPlan reads the /16 of a tenant, such as "10.201.0.0/16".
func NewPlan(text string) (Plan, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return Plan{}, fmt.Errorf("network of the tenant: %w", err)
	}
	if !prefix.Addr().Is4() || prefix.Bits() != 16 || prefix != prefix.Masked() {
		return Plan{}, fmt.Errorf("network of the tenant: %q: give an IPv4 /16, such as 10.201.0.0/16", text)
	}
	return Plan{prefix: prefix}, nil
}

func (p Plan) addr(third, fourth byte) netip.Addr {
	raw := p.prefix.Addr().As4()
	raw[2], raw[3] = third, fourth
	return netip.AddrFrom4(raw)
}

// String is the /16.
func (p Plan) String() string { return p.prefix.String() }

// Host is the bridge's address: where nodes and Pods reach the host.
func (p Plan) Host() netip.Addr { return p.addr(0, 1) }

// Node is the address of the node in a slot, from 1 to MaxSlots.
func (p Plan) Node(slot int) netip.Addr { return p.addr(0, byte(slot+1)) }

// Pods is the range of the Pods of the node in a slot.
func (p Plan) Pods(slot int) netip.Prefix { return netip.PrefixFrom(p.addr(byte(slot), 0), 24) }

// Services is the range of service addresses.
func (p Plan) Services() netip.Prefix { return netip.PrefixFrom(p.addr(240, 0), 20) }

// MAC is the hardware address of the node in a slot; slot 0 is the bridge.
// They are fixed: a bridge without a fixed one changes it when a cable is
// pulled, and the other nodes lose the apiserver for seconds.
func (p Plan) MAC(slot int) string {
	raw := p.prefix.Addr().As4()
	return fmt.Sprintf("02:4c:54:%02x:%02x:%02x", raw[0], raw[1], slot)
}

// ErrNoNetwork says that no range of addresses is left for another tenant.
var ErrNoNetwork = errors.New("no free network")

// Choose gives the first of 10.201.0.0/16 to 10.249.0.0/16 that overlaps
// nothing in use on the machine.
func Choose(used []netip.Prefix) (Plan, error) {
	for second := 201; second < 250; second++ {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second)}), 16)
		free := true
		for _, other := range used {
			if other.Bits() > 0 && candidate.Overlaps(other) {
				free = false
			}
		}
		if free {
			return Plan{prefix: candidate}, nil
		}
	}
	return Plan{}, fmt.Errorf("%w: all of 10.201.0.0/16 to 10.249.0.0/16 overlap an address or route of this machine", ErrNoNetwork)
}

// Used lists the addresses and routes of the machine.
func Used() ([]netip.Prefix, error) {
	var used []netip.Prefix
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, addr := range addrs {
		if prefix, err := netip.ParsePrefix(addr.String()); err == nil {
			used = append(used, prefix.Masked())
		}
	}
	text, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	routes, err := parseRoutes(string(text))
	return append(used, routes...), err
}

// parseRoutes reads /proc/net/route: columns by tabs, the second is the
// destination and the eighth the mask, as hexadecimal words in the machine's
// byte order.
func parseRoutes(text string) ([]netip.Prefix, error) {
	var routes []netip.Prefix
	first := true
	for line := range strings.Lines(text) {
		if first {
			first = false
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		to, err := hexAddr(fields[1])
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		mask, err := hexAddr(fields[7])
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		raw := mask.As4()
		ones, _ := net.IPMask(raw[:]).Size()
		routes = append(routes, netip.PrefixFrom(to, ones))
	}
	return routes, nil
}

func hexAddr(text string) (netip.Addr, error) {
	word, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.AddrFrom4([4]byte{byte(word), byte(word >> 8), byte(word >> 16), byte(word >> 24)}), nil
}
