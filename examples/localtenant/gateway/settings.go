// Package gateway rents and returns nodes as the market's gateway does: from
// zero, by counting Pods, and back to zero when nothing has run for a while.
package gateway

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrSettings says that a setting is out of range. Nothing was changed.
var ErrSettings = errors.New("gateway setting out of range")

// Settings can all be changed while the gateway runs.
type Settings struct {
	// Ceiling is the most nodes that are booted; at least 1.
	Ceiling int `json:"ceiling"`
	// PodsPerNode is how many unfinished Pods count for one node; at least 1.
	PodsPerNode int `json:"podsPerNode"`
	// Hold is how long nothing must have run before all nodes are dropped.
	Hold metav1.Duration `json:"hold"`
	// BootTime is how long a machine takes to boot before its node starts.
	BootTime metav1.Duration `json:"bootTime"`
	// Paused keeps all nodes as they are.
	Paused bool `json:"paused"`
}

// Defaults are the market's, with a boot time that is short for a machine.
func Defaults() Settings {
	return Settings{
		Ceiling:     10,
		PodsPerNode: 8,
		Hold:        metav1.Duration{Duration: 2 * time.Minute},
		BootTime:    metav1.Duration{Duration: 3 * time.Second},
	}
}

// Check tells what is out of range. Values are refused, never bent.
func (s Settings) Check() error {
	switch {
	case s.Ceiling < 1:
		return fmt.Errorf("%w: ceiling is %d; it must be at least 1", ErrSettings, s.Ceiling)
	case s.PodsPerNode < 1:
		return fmt.Errorf("%w: pods-per-node is %d; it must be at least 1", ErrSettings, s.PodsPerNode)
	case s.Hold.Duration < 0:
		return fmt.Errorf("%w: hold is %s; it must not be negative", ErrSettings, s.Hold.Duration)
	case s.BootTime.Duration < 0:
		return fmt.Errorf("%w: boot-time is %s; it must not be negative", ErrSettings, s.BootTime.Duration)
	}
	return nil
}

// Change is a change of some settings; nil leaves one as it is.
type Change struct {
	Ceiling     *int             `json:"ceiling,omitempty"`
	PodsPerNode *int             `json:"podsPerNode,omitempty"`
	Hold        *metav1.Duration `json:"hold,omitempty"`
	BootTime    *metav1.Duration `json:"bootTime,omitempty"`
	Paused      *bool            `json:"paused,omitempty"`
}

// With gives the settings after a change.
func (s Settings) With(change Change) Settings {
	if change.Ceiling != nil {
		s.Ceiling = *change.Ceiling
	}
	if change.PodsPerNode != nil {
		s.PodsPerNode = *change.PodsPerNode
	}
	if change.Hold != nil {
		s.Hold = *change.Hold
	}
	if change.BootTime != nil {
		s.BootTime = *change.BootTime
	}
	if change.Paused != nil {
		s.Paused = *change.Paused
	}
	return s
}
