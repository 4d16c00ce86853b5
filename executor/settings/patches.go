package settings

import (
	"errors"
	"fmt"
	"slices"
)

// Kinds of patches.
const (
	PatchStrategic = "strategic"
	PatchMerge     = "merge"
	PatchJSON      = "json"
)

// Patches change the Pod's spec at last.
type Patches struct {
	PodSpec []PodSpecPatch `toml:"pod_spec" doc:"Patches of the Pod's spec, applied in their order after everything else, where the job has FF_USE_ADVANCED_POD_SPEC_CONFIGURATION. One that would let jobs share a node, or stages miss their containers, is refused." parity:"what would let two jobs share a node or take the driver's containers and volumes away is refused"`
}

// PodSpecPatch is a patch.
type PodSpecPatch struct {
	Name  string `toml:"name" example:"user namespace" doc:"What the patch is for. Messages name it."`
	Patch string `toml:"patch" example:"hostUsers: false" doc:"The patch, as YAML or JSON. It is that of a Pod's spec, not of the whole Pod."`
	Path  string `toml:"patch_path" doc:"File with the patch, in place of patch. It is read at the start of each job."`
	Type  string `toml:"patch_type" example:"strategic" doc:"strategic, as kubectl patch does, which is what it is without this; merge (RFC 7386); or json (RFC 6902)."`
}

func (p Patches) check() []error {
	var all []error
	for i, patch := range p.PodSpec {
		key := fmt.Sprintf("kubernetes.pod_spec %d (%s)", i+1, patch.Name)
		switch {
		case patch.Patch == "" && patch.Path == "":
			all = append(all, fmt.Errorf("%s has neither patch nor patch_path", key))
		case patch.Patch != "" && patch.Path != "":
			all = append(all, fmt.Errorf("%s has patch and patch_path: keep one of them", key))
		case patch.Path != "":
			all = append(all, absolute(key+": patch_path", patch.Path))
		}
		if !slices.Contains([]string{"", PatchStrategic, PatchMerge, PatchJSON}, patch.Type) {
			all = append(all, fmt.Errorf("%s: patch_type is %q: use strategic, merge or json", key, patch.Type))
		}
	}
	return []error{errors.Join(all...)}
}
