package doctor

import (
	"fmt"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

func judgeNodes(count capacity.Count, ceiling int, err error) Result {
	switch {
	case err != nil:
		return failed(err.Error(), "look at the tenant cluster's apiserver and its log")
	case count.Total > ceiling:
		return warning(fmt.Sprintf("%s, and tenant.ceiling is %d, so that waits are explained wrongly", joblog.Count(count.Total, "node"), ceiling), "set tenant.ceiling to what the gateway has")
	case count.Ready < count.Total:
		return warning(fmt.Sprintf("%s, %d of them not ready", joblog.Count(count.Total, "node"), count.Total-count.Ready), "look at them (kubectl describe node); a node that is just booting or shutting down is well")
	case count.Total == 0:
		return ok("none at present, up to %d; the first job waits for a boot", ceiling)
	}
	return ok("%d of %d, all ready", count.Total, ceiling)
}

func judgePodsPerNode(n int) Result {
	switch {
	case n > 1:
		return failed(fmt.Sprintf("tenant.pods_per_node is %d: the gateway boots one node for %d jobs, and a node takes one job, so that the others wait for ever", n, n),
			"set "+podsPerNodeVariable+" to 1 at the gateway, and tenant.pods_per_node likewise")
	case n == 0:
		return warning("tenant.pods_per_node is not told, and a gateway where nobody has set it counts 8 Pods for a node: then a second job waits until the first has ended",
			"set "+podsPerNodeVariable+" to 1 at the gateway, and tell so with tenant.pods_per_node = 1; doctor --probe sees whether it is so")
	}
	return ok("1, as it has to be, by the driver's own configuration; doctor --probe sees whether it is so")
}

// podsPerNodeVariable is the gateway's setting.
const podsPerNodeVariable = "SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE"

// judgeWarm judges how many nodes policies keep at most. The gateway's own
// hold cannot be asked for; it only lets nodes go later.
func judgeWarm(w settings.Warm, ceiling int) Result {
	if !w.Used() {
		return ok("none are kept; a job that finds no free node waits for a boot")
	}
	most := 0
	for _, p := range w.Policies {
		most = max(most, p.IdleCount)
	}
	if w.MaxPausePods > 0 {
		most = min(most, w.MaxPausePods)
	}
	switch {
	case most >= ceiling:
		return warning(fmt.Sprintf("policies keep up to %d nodes free of %d, so that placeholders stand in each other's way", most, ceiling), "lower idle_count or set warm.max_pause_pods below tenant.ceiling")
	case most == 0:
		return ok("a job's node is held for %s after it", w.Linger)
	}
	return ok("up to %d of %d nodes are kept free, by placeholders of %s", most, ceiling, w.PausePodImage)
}
