package job

// Container names one of the two containers of a job's Pod.
type Container string

// The containers of a job's Pod.
const (
	// Build runs the job's own scripts in the job's image.
	Build Container = "build"
	// Helper runs what the runner wrote: git, cache and artifacts.
	Helper Container = "helper"
)

// helperStages are the sub-stages that the runner marks as predefined
// (common/build.go:751-775).
var helperStages = map[string]bool{
	"prepare_script":              true,
	"get_sources":                 true,
	"clear_worktree":              true,
	"boot_verify_probes":          true,
	"restore_cache":               true,
	"download_artifacts":          true,
	"archive_cache":               true,
	"archive_cache_on_failure":    true,
	"upload_artifacts_on_success": true,
	"upload_artifacts_on_failure": true,
	"cleanup_file_variables":      true,
}

// ContainerFor is the container in which a sub-stage of run belongs. A stage
// that this table does not know is the job's own, as in the runner: user steps
// are named freely (step_<name>).
func ContainerFor(stage string) Container {
	if helperStages[stage] {
		return Helper
	}
	return Build
}
