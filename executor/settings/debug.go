package settings

import (
	"fmt"
	"time"
)

// HoldVariable is the job variable by which a job asks for its Pod to be kept
// when it fails.
const HoldVariable = "TENANT_EXECUTOR_DEBUG_HOLD"

// Debug is what helps to look into failed jobs.
type Debug struct {
	Hold Duration `toml:"hold" default:"0s" doc:"How long the Pod of a failed job stays at most, so that somebody can look into it by tenant-executor shell. A job asks for it by the variable TENANT_EXECUTOR_DEBUG_HOLD: a time such as 15m, or true for the whole of this. Its node stays busy meanwhile. The Pod never outlives the job's time-out by more than 15 minutes. 0s keeps none."`
}

func (d Debug) check() error { return atLeast("debug.hold", d.Hold, 0) }

// Asked is how long a job's Pod stays when the job fails: what the job's
// variable asks for, at most what the setting allows. The error is about the
// variable.
func (d Debug) Asked(variable string) (time.Duration, error) {
	switch variable {
	case "", "0", "false":
		return 0, nil
	case "1", "true":
		return d.Hold.Value(), nil
	}
	asked, err := time.ParseDuration(variable)
	if err != nil || asked < 0 {
		return 0, fmt.Errorf("%s is %q: write a time such as 15m, or true", HoldVariable, variable)
	}
	return min(asked, d.Hold.Value()), nil
}
