// Package owner tells whose a Pod is: the runner process that called the
// driver for it. A process can be proven dead on its own host, which is how
// Pods are found that nobody will clean up any more.
package owner

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Owner is the runner process that a job belongs to. A process id alone proves
// nothing, since ids are used again: with the boot and the start time it means
// one process for ever.
type Owner struct {
	// Host names the machine, also after a reboot.
	Host string `json:"host"`
	// Hostname is the host's name, for people.
	Hostname string `json:"hostname"`
	// Boot is the kernel's id of the present boot.
	Boot string `json:"boot"`
	// Space is the PID namespace that PID counts in, as the kernel names it.
	Space string `json:"pidNamespace"`
	// Container is the container of a Pod that the runner is in, by the Pod's UID
	// and the container's name; "" outside of Kubernetes.
	Container string `json:"container,omitempty"`
	// PID is the runner's process id, Start its start in the kernel's own
	// count (field 22 of /proc/PID/stat, proc(5)).
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	// Attempt is the file with the job that the runner made for this attempt.
	// It removes the file when the attempt is over.
	Attempt string `json:"attempt"`
}

// ErrIncomplete is the error for an owner that does not mean one process.
var ErrIncomplete = errors.New("it does not name a process")

// String is the owner as an annotation holds it.
func (o Owner) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return "" // not reached: strings and numbers alone
	}
	return string(text)
}

// Parse reads what String wrote.
func Parse(text string) (Owner, error) {
	var o Owner
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return Owner{}, fmt.Errorf("reading an owner: %w", err)
	}
	if o.Host == "" || o.Boot == "" || o.Space == "" || o.PID < 1 {
		return Owner{}, fmt.Errorf("reading an owner: %w", ErrIncomplete)
	}
	return o, nil
}

// process is the owner without its attempt: two jobs of one runner share it.
func (o Owner) process() Owner {
	o.Attempt, o.Hostname = "", ""
	return o
}

// Process means the runner's process, the same for all of its attempts.
func (o Owner) Process() string { return o.process().String() }
