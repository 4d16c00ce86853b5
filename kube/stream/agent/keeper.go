package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// KeeperMark is the file in which the first process of the container whose
// stages are in root writes its process id, where an entrypoint of the image
// runs before it.
func KeeperMark(root string) string { return root + ".keeper" }

// containerEnvironment is the environment of the container: the agent's own,
// or where an entrypoint has run, the one that it left to the keeper. A keeper
// of another user does not show it.
func containerEnvironment(root, proc string, own []string) []string {
	path := KeeperMark(root)
	if !ownFile(path) {
		return own
	}
	mark, err := os.ReadFile(path)
	if err != nil {
		return own
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(mark)))
	if err != nil {
		return own
	}
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "environ"))
	if err != nil {
		return own
	}
	var env []string
	for _, entry := range bytes.Split(text, []byte{0}) {
		if len(entry) > 0 {
			env = append(env, string(entry))
		}
	}
	return env
}

// ownFile reports whether a file, which is no link, belongs to this user: in the
// folder of all containers others can make files of any name.
func ownFile(path string) bool {
	var stat syscall.Stat_t
	return syscall.Lstat(path, &stat) == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFREG && int(stat.Uid) == os.Geteuid()
}
