package owner

import (
	"regexp"
	"strings"
)

// container names the container of a Pod that the driver runs in, "" outside of
// Kubernetes: the kubelet mounts a file of the folder that it keeps for each start
// of a container (the termination log), which has the Pod's UID and the container's
// name in its path. The name is the same for each start of the container, of which the kubelet
// has only one at a time: an owner of another PID namespace in it is one of an
// earlier start, and dead.
func (h Host) container() string {
	text, err := h.read("self/mountinfo")
	if err != nil {
		return ""
	}
	folder := regexp.MustCompile(`/pods/([0-9a-f-]{36})/containers/([a-z0-9-]+)/[0-9a-f]+$`)
	for line := range strings.Lines(string(text)) {
		const root = 3 // proc(5): ID, parent, device, root, mount point, …
		if fields := strings.Fields(line); len(fields) > root {
			if found := folder.FindStringSubmatch(fields[root]); found != nil {
				return found[1] + "/" + found[2]
			}
		}
	}
	return ""
}
