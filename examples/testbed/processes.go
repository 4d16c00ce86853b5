package testbed

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// pauseName is the process of every Pod's pause container, which belongs to the
// node and ends after all others.
const pauseName = "pause\n"

// Processes are the processes of a Pod's containers that live, by their numbers
// on this machine: the tenant's nodes are on it.
func Processes(pod types.UID) ([]int, error) {
	found, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, path := range found {
		groups, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(groups, []byte("/pod"+string(pod)+"/")) {
			continue // it has ended, or is another's
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			continue // it has ended
		}
		if name, err := os.ReadFile(filepath.Join(filepath.Dir(path), "comm")); err != nil || string(name) == pauseName {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		all = append(all, pid)
	}
	return all, nil
}
