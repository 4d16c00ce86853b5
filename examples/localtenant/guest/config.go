// Package guest is the inside of a node: the first process in the node's
// namespaces. It sets up network and mounts, runs containerd and the kubelet,
// and adopts what they leave.
package guest

import (
	"encoding/json"
	"fmt"
	"os"
)

// Config says how to set a node up. The host writes it to a file.
type Config struct {
	// Name is the node's hostname.
	Name string
	// Cgroup is the control group for the node's own processes.
	Cgroup string
	// Network are commands of ip(8).
	Network []string
	// Mounts are the node's own folders and files, in this order. All else on
	// the machine's disk the node can only read.
	Mounts []Mount
	// Sysctls are settings of the whole machine that the kubelet wants to
	// change. The node sees these values and writes go nowhere.
	Sysctls map[string]string
	// Scratch is a folder for small files of the guest.
	Scratch    string
	Containerd Service
	Kubelet    Service
	// Socket is where containerd listens when it is up.
	Socket string
}

// Mount puts a folder or file of the machine at another place in the node.
type Mount struct {
	Source string
	Target string
	// File says that it is a file.
	File bool
	// IfThere says that it only covers what the machine has there.
	IfThere bool
}

// Service is a program that is kept running.
type Service struct {
	Path string
	Args []string
	Env  []string
	// Log is appended to.
	Log string
}

// Read reads the configuration.
func Read(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the node's configuration: %w", err)
	}
	var config Config
	if err := json.Unmarshal(text, &config); err != nil {
		return Config{}, fmt.Errorf("read the node's configuration %s: %w", path, err)
	}
	return config, nil
}

// Command is what the host writes to the guest, one JSON object a line.
type Command struct {
	// Do is one of the constants below.
	Do string `json:"do"`
}

// What a guest can be told to do.
const (
	// Begin says that the cable is there.
	Begin = "begin"
	// RestartKubelet and RestartContainerd kill the program; it is started
	// again at once.
	RestartKubelet    = "restart-kubelet"
	RestartContainerd = "restart-containerd"
)

// Event is what the guest answers, one JSON object a line, in the order of the
// commands.
type Event struct {
	// Done repeats the command.
	Done string `json:"done"`
	// Error is empty when it worked.
	Error string `json:"error,omitempty"`
}
