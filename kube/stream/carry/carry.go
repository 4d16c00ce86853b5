// Package carry holds the agent's binaries, which the driver carries and sends
// into Pods. `make build` puts them into the folder dist before it builds the
// driver; a driver built without them says so when it needs one.
package carry

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// ErrNotBuilt says that this program was built without the agent.
var ErrNotBuilt = errors.New(`this program was built without podagent, which runs in the Pod; build it with "make build"`)

// machines maps what `uname -m` says to Go's name of the architecture.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// Program is the agent for one architecture.
type Program struct {
	// Packed is the program as gzip has it.
	Packed []byte
	// Unpacked is the program.
	Unpacked []byte
}

// Agent is the agent for a machine, as `uname -m` names it there.
func Agent(machine string) (*Program, error) {
	arch, known := machines[machine]
	if !known {
		return nil, fmt.Errorf("the node is a %q; podagent is there for x86_64 and aarch64", machine)
	}
	packed, err := dist.ReadFile("dist/podagent-linux-" + arch + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking podagent for %s: %w", arch, err)
	}
	unpacked, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpacking podagent for %s: %w", arch, err)
	}
	return &Program{Packed: packed, Unpacked: unpacked}, nil
}
