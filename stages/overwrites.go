package stages

import (
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/overwrite"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// overwrites are what the job has made of the operator's settings.
type overwrites struct {
	operators settings.Kubernetes
	result    overwrite.Result
	// refused is why the job cannot have what it asks for. Prepare fails of it;
	// the other stages work with the operator's settings.
	refused error
}

// tellOverwrites says what the job's variables have set, and which of them have
// no effect.
func (d *Driver) tellOverwrites() {
	for _, line := range d.asked.result.Lines {
		d.log.Info("%s", line)
	}
	var ignored []string
	for _, one := range d.asked.result.Ignored {
		ignored = append(ignored, one.Variable+" ("+one.Reason+")")
	}
	if len(ignored) > 0 {
		d.log.Info("Without effect: %s", strings.Join(ignored, ", "))
	}
}

// reach is where Pods of the runner's jobs are, this one among them.
func (d *Driver) reach() *reach {
	return reachOf(d.asked.operators, d.settings.Kubernetes)
}
