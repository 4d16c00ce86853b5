// Package deps is the list of Debian packages that a local tenant needs, and
// how to get them.
package deps

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// ErrMissing says that packages are missing.
var ErrMissing = errors.New("packages of Debian are missing")

// need is a package and a file by which it is known to be there.
type need struct {
	pkg  string
	file string
}

// needs is the one list of packages.
func needs() []need {
	return []need{
		{"containerd", "/usr/bin/containerd"},
		{"runc", "/usr/sbin/runc"},
		{"containernetworking-plugins", "/usr/lib/cni/bridge"},
		{"iproute2", "/sbin/ip"},
		{"iptables", "/usr/sbin/iptables"},
		{"conntrack", "/usr/sbin/conntrack"},
		{"util-linux", "/usr/bin/nsenter"},
		{"mount", "/bin/mount"},
		{"git", "/usr/bin/git"},
		{"ca-certificates", "/usr/sbin/update-ca-certificates"},
	}
}

// Missing gives the packages that are not there, by asking exists for their
// files.
func Missing(exists func(path string) bool) []string {
	var missing []string
	for _, n := range needs() {
		if !exists(n.file) {
			missing = append(missing, n.pkg)
		}
	}
	return missing
}

// Exists tells whether there is a file.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Check fails when something is missing, and says how to get it.
func Check() error {
	if missing := Missing(Exists); len(missing) > 0 {
		return fmt.Errorf("%w: %s: install them with `localtenant deps --install`", ErrMissing, strings.Join(missing, ", "))
	}
	return nil
}

//go:embed apt.sh
var waitingApt string

// Apt is the command line of an apt-get that waits while somebody else installs.
func Apt(args ...string) (program string, arguments []string) {
	return "sh", append([]string{"-c", waitingApt, "apt-get"}, args...)
}

// Install installs packages with apt-get. The daemons that some bring along are
// not needed: nodes start their own.
func Install(ctx context.Context, packages []string, env []string, out io.Writer) error {
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...),
	} {
		program, arguments := Apt(args...)
		cmd := exec.CommandContext(ctx, program, arguments...)
		cmd.Env = env
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}
