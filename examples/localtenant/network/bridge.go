package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
)

// Batch runs commands of ip(8), one a line, in one process.
func Batch(ctx context.Context, lines []string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ip -batch: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// AddBridge makes the tenant's bridge, and the routes to the Pods of all nodes
// that may ever come. A route to a node that is not there harms nobody, and so
// no route ever has to follow a node.
func AddBridge(ctx context.Context, bridge string, plan Plan) error {
	lines := []string{
		fmt.Sprintf("link add name %s address %s type bridge", bridge, plan.MAC(0)),
		fmt.Sprintf("address add %s/24 dev %s", plan.Host(), bridge),
		fmt.Sprintf("link set dev %s up", bridge),
	}
	lines = append(lines, podRoutes(plan, 0, bridge)...)
	if err := Batch(ctx, lines); err != nil {
		return fmt.Errorf("make bridge %s: %w", bridge, err)
	}
	return nil
}

// podRoutes leads to the Pods of every slot but one's own.
func podRoutes(plan Plan, own int, device string) []string {
	var lines []string
	for slot := 1; slot <= MaxSlots; slot++ {
		if slot != own {
			lines = append(lines, fmt.Sprintf("route add %s via %s dev %s", plan.Pods(slot), plan.Node(slot), device))
		}
	}
	return lines
}

// GuestDevice is the name of a node's end of the cable.
const GuestDevice = "eth0"

// AddCable lays a cable from the bridge into the network namespace of a
// process. link is the host's end.
func AddCable(ctx context.Context, link, bridge string, plan Plan, slot, pid int) error {
	err := Batch(ctx, []string{
		fmt.Sprintf("link add name %s mtu 1500 type veth peer name %s address %s netns %d", link, GuestDevice, plan.MAC(slot), pid),
		fmt.Sprintf("link set dev %s master %s up", link, bridge),
	})
	if err != nil {
		return fmt.Errorf("lay cable %s: %w", link, err)
	}
	return nil
}

// GuestLines are the commands of ip(8) that set up a node from its inside.
func GuestLines(plan Plan, slot int) []string {
	lines := []string{
		"link set dev lo up",
		fmt.Sprintf("address add %s/24 dev %s", plan.Node(slot), GuestDevice),
		fmt.Sprintf("link set dev %s up", GuestDevice),
		fmt.Sprintf("route add default via %s", plan.Host()),
	}
	return append(lines, podRoutes(plan, slot, GuestDevice)...)
}

// SetLink pulls (false) or plugs in (true) a cable.
func SetLink(ctx context.Context, link string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	if err := Batch(ctx, []string{fmt.Sprintf("link set dev %s %s", link, state)}); err != nil {
		return fmt.Errorf("set link %s %s: %w", link, state, err)
	}
	return nil
}

// Links lists the network links of the host that owns accepts.
func Links(owns func(link string) bool) ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	var names []string
	for _, link := range all {
		if owns(link.Name) {
			names = append(names, link.Name)
		}
	}
	return names, nil
}

// RemoveLink removes a link, and with it its addresses and routes. One that
// vanished meanwhile (a cable goes with its node) is no error.
func RemoveLink(ctx context.Context, link string) error {
	err := Batch(ctx, []string{"link delete dev " + link})
	if err == nil {
		return nil
	}
	left, listErr := Links(func(name string) bool { return name == link })
	if listErr == nil && len(left) == 0 {
		return nil
	}
	return errors.Join(fmt.Errorf("remove link %s: %w", link, err), listErr)
}
