package stages

import (
	_ "embed"
)

// The programs that run inside the Pod. Their own first lines say what they do.
var (
	//go:embed shell/keeper.sh
	keeperProgram string
	//go:embed shell/setup.sh
	setupProgram string
	//go:embed shell/stage.sh
	stageProgram string
)

// podFolder is where the driver keeps its programs and the scripts of running
// stages in the Pod.
const podFolder = "/tenant-executor"

// setupLacksHelper is setup.sh's exit code for an image without GitLab's helper
// program.
const setupLacksHelper = 3

// keeperCommand is the first process of a container; the container's name is
// still to be added.
func keeperCommand() []string {
	return []string{"sh", "-c", keeperProgram, "keeper", podFolder}
}

func setupCommand() []string {
	return []string{"sh", "-c", setupProgram, "setup", podFolder}
}

// stageCommand starts or stops a stage.
func stageCommand(verb, container, id, number string) []string {
	return []string{"sh", podFolder + "/stage", verb, podFolder, container, id, number}
}
