package stages

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

// sizesFile, with the cluster's identity behind it, holds how large the nodes of
// late were.
const sizesFile = "nodes-"

// sizesCount is for how long a node counts after it was seen. Nodes that are
// larger by now must not be kept out for ever by what is remembered, since a
// job that is refused boots none.
const sizesCount = 24 * time.Hour

// keptSizes is how many sizes are kept.
const keptSizes = 20

// nodeSize is a node as it was seen.
type nodeSize struct {
	Seen        time.Time           `json:"seen"`
	Allocatable corev1.ResourceList `json:"allocatable"`
}

// Sizes are the nodes that count at a time, oldest first.
func (h history) Sizes(now time.Time) []nodeSize {
	if h.files == nil {
		return nil
	}
	text, err := h.files.ReadFile(sizesFile + h.cluster)
	if err != nil {
		return nil
	}
	var all, count []nodeSize
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	for _, s := range all {
		if age := now.Sub(s.Seen); age >= 0 && age < sizesCount {
			count = append(count, s)
		}
	}
	return count[max(0, len(count)-keptSizes):]
}

// AddSize notes how large a node is. Of two drivers at once one may be lost.
func (h history) AddSize(now time.Time, allocatable corev1.ResourceList) {
	if h.files == nil || len(allocatable) == 0 {
		return
	}
	size := nodeSize{Seen: now.UTC(), Allocatable: corev1.ResourceList{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, there := allocatable[name]; there {
			size.Allocatable[name] = q
		}
	}
	sizes := append(h.Sizes(now), size)
	text, err := json.Marshal(sizes[max(0, len(sizes)-keptSizes):])
	if err != nil {
		return
	}
	_ = h.files.WriteFile(sizesFile+h.cluster, text) // it only costs a late answer to a job that asks for too much
}

// largest is the most that a node of late had of each resource.
func largest(sizes []nodeSize) corev1.ResourceList {
	most := corev1.ResourceList{}
	for _, s := range sizes {
		for name, q := range s.Allocatable {
			if have, there := most[name]; !there || q.Cmp(have) > 0 {
				most[name] = q
			}
		}
	}
	return most
}

// checkSize refuses a Pod that no node can ever take. It would wait until its
// budget ends, and hold up the jobs behind it.
func (d *Driver) checkSize(spec *corev1.PodSpec) error {
	size := largest(d.history.Sizes(d.clock.Now()))
	for name, q := range configuredSize(d.settings.Tenant) {
		size[name] = q
	}
	beyond := capacity.Beyond(capacity.Requests(spec), size)
	if len(beyond) == 0 {
		return nil
	}
	return failure.New(failure.Oversized, "the job's containers ask for %s", excess(beyond))
}

// configuredSize is what the settings say of the nodes.
func configuredSize(t settings.Tenant) corev1.ResourceList {
	size := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: t.NodeCPU, corev1.ResourceMemory: t.NodeMemory, corev1.ResourceEphemeralStorage: t.NodeEphemeralStorage,
	} {
		if q, err := resource.ParseQuantity(text); err == nil {
			size[name] = q
		}
	}
	return size
}
