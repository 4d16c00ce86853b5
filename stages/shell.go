package stages

import (
	_ "embed"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// The programs that run inside the Pod. Their own first lines say what they do.
var (
	//go:embed shell/keeper.sh
	keeperProgram string
	//go:embed shell/setup.sh
	setupProgram string
	//go:embed shell/person.sh
	personProgram string
)

// podFolder is the driver's folder in the Pod, on a volume that build and helper
// share. podAgent is the agent in it.
const (
	podFolder = "/tenant-executor"
	podAgent  = podFolder + "/podagent"
)

// stagesFolder is where the agent keeps the scripts and the output of a
// container's stages: apart for each container, since each has processes of its
// own.
func stagesFolder(container job.Container) string { return podFolder + "/" + string(container) }

// setupLacksHelper is setup.sh's exit code for an image without GitLab's helper
// program.
const setupLacksHelper = 3

// keeperMark is where the keeper of a container writes its process id once it
// runs: the agent finds the environment of the container's entrypoint by it.
func keeperMark(container job.Container) string { return agent.KeeperMark(stagesFolder(container)) }

// keeperCommand is the first process of a container; the container's name is
// still to be added.
func keeperCommand() []string { return []string{"sh", "-c", keeperProgram, "keeper"} }

func setupCommand() []string { return []string{"sh", "-c", setupProgram, "setup", podFolder} }
