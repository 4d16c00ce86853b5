package settings

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Sizes of the spool, in bytes: what waits in the Pod for the driver. A larger one
// only has the script wait later for a reader that is slower than it.
const (
	// smallestSpool is two pieces of the agent's spool.
	smallestSpool = 8 << 20
	usualSpool    = 64 << 20
	// spoolShare is which part of the Pod's disk the spool may take. It counts
	// against the limits of the job's containers, at which the kubelet evicts the
	// Pod.
	spoolShare = 8
)

// checkSpool refuses a spool_limit that is no size, or that would get jobs evicted.
func (s Settings) checkSpool() error {
	if s.Run.SpoolLimit == "" {
		return nil
	}
	limit, err := quantity("run.spool_limit", s.Run.SpoolLimit)
	if err != nil {
		return err
	}
	if limit.Value() < smallestSpool {
		return fmt.Errorf("run.spool_limit is %q: it has to be at least 8Mi", s.Run.SpoolLimit)
	}
	if disk := s.diskLimit(); disk > 0 && limit.Value() > max(disk/spoolShare, smallestSpool) {
		return fmt.Errorf("run.spool_limit is %q: it counts against ephemeral_storage_limit and helper_ephemeral_storage_limit of [kubernetes], which are %dMi in all, and may be an eighth of them; leave it out, or write at most %dMi",
			s.Run.SpoolLimit, disk>>20, max(disk/spoolShare, smallestSpool)>>20)
	}
	return nil
}

// SpoolBytes is how many bytes of a stage's output may wait in the Pod. A job may
// have lowered the limits of its disk since they were checked.
func (s Settings) SpoolBytes() int64 {
	spool := int64(usualSpool)
	if limit, err := resource.ParseQuantity(s.Run.SpoolLimit); err == nil {
		spool = limit.Value()
	}
	if disk := s.diskLimit(); disk > 0 {
		spool = min(spool, disk/spoolShare)
	}
	return max(spool, smallestSpool)
}

// diskLimit is the sum of the limits of the job's containers, as the kubelet counts
// them; 0 where there is none.
func (s Settings) diskLimit() int64 {
	var sum int64
	for _, text := range []string{s.Kubernetes.EphemeralStorageLimit, s.Kubernetes.HelperEphemeralStorageLimit} {
		if limit, err := resource.ParseQuantity(text); err == nil {
			sum += limit.Value()
		}
	}
	return sum
}
