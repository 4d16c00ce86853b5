package agent

import (
	"os"
	"strconv"
	"strings"
)

// oomKills counts the processes of this container that the kernel has killed
// for want of memory, as the cgroup tells (version 2, then version 1); 0 where
// it does not.
func oomKills() int {
	for _, path := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			if len(fields) == 2 && fields[0] == "oom_kill" {
				if n, err := strconv.Atoi(fields[1]); err == nil {
					return n
				}
			}
		}
	}
	return 0
}
