package network

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// ShutPort has the network namespace of a process refuse connections to a TCP
// port; OpenPort ends that.
func ShutPort(ctx context.Context, pid, port int) error {
	return portRule(ctx, "--insert", pid, port)
}

// OpenPort undoes ShutPort.
func OpenPort(ctx context.Context, pid, port int) error {
	return portRule(ctx, "--delete", pid, port)
}

func portRule(ctx context.Context, change string, pid, port int) error {
	cmd := exec.CommandContext(ctx, "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid), "iptables", "--wait", change, "INPUT",
		"--protocol", "tcp", "--destination-port", strconv.Itoa(port), "--jump", "REJECT", "--reject-with", "tcp-reset")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("iptables %s a rule for port %d of process %d: %w: %s", change, port, pid, err, strings.TrimSpace(complaint.String()))
	}
	return nil
}
