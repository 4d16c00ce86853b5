package pods

import "strings"

// SandboxReason is the reason of the event by which a kubelet says that a Pod's
// sandbox, its network and its own small image, cannot be made.
const SandboxReason = "FailedCreatePodSandBox"

// SandboxPull reports whether an event's message says that the image of the sandbox
// cannot be pulled, and gives the runtime's reason alone (pkg/cri/server in
// containerd, server/sandbox_run in CRI-O).
func SandboxPull(message string) (string, bool) {
	lower := strings.ToLower(message)
	if !strings.Contains(lower, "sandbox image") && !strings.Contains(lower, "pause image") {
		return "", false
	}
	_, text := pullReason("", message)
	return text, true
}
