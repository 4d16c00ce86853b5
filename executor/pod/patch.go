package pod

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// patch changes the Pod's spec by the patches of pod_spec, in their order,
// where the job has the flag for it. Nothing but seal comes after it.
func (b *builder) patch() error {
	b.unpatched = b.Pod.Spec.DeepCopy()
	for _, c := range b.unpatched.Containers {
		b.Made = append(b.Made, c.Name)
	}
	if len(b.Settings.PodSpec) == 0 || !Flag(b.Variables, FlagPodSpec) {
		return nil
	}
	spec, err := json.Marshal(b.Pod.Spec)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "writing the Pod's spec down")
	}
	for i, p := range b.Settings.PodSpec {
		if spec, err = b.patched(spec, p); err != nil {
			return failure.Wrap(failure.Settings, err, "kubernetes.pod_spec %d (%s)", i+1, p.Name)
		}
	}
	var whole corev1.PodSpec
	if err := json.Unmarshal(spec, &whole); err != nil {
		return failure.Wrap(failure.Settings, err, "kubernetes.pod_spec makes something of the Pod's spec that is none")
	}
	b.Pod.Spec = whole
	return nil
}

// patched applies one patch.
func (b *builder) patched(spec []byte, p settings.PodSpecPatch) ([]byte, error) {
	text := []byte(p.Patch)
	if p.Path != "" {
		var err error
		if text, err = b.ReadFile(p.Path); err != nil {
			return nil, err
		}
	}
	patch, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the patch is neither YAML nor JSON: %w", err)
	}
	switch p.Type {
	case settings.PatchJSON:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, fmt.Errorf("the patch is no list of operations as RFC 6902 has it: %w", err)
		}
		return operations.Apply(spec)
	case settings.PatchMerge:
		return jsonpatch.MergePatch(spec, patch)
	}
	return strategicpatch.StrategicMergePatch(spec, patch, corev1.PodSpec{})
}
