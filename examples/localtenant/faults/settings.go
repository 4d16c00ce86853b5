// Package faults holds what goes wrong on demand: boots that fail, nodes that
// never become ready, kubelets out of reach, nodes dropped under their Pods.
package faults

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrSettings says that a setting is out of range. Nothing was changed.
var ErrSettings = errors.New("fault out of range")

// Settings are the faults that are still to come. The counts go down as they
// happen.
type Settings struct {
	// FailingBoots is how many of the next boots fail.
	FailingBoots int `json:"failingBoots"`
	// NeverReady is how many of the next nodes never become ready: their kubelet
	// registers, and reports for ever that its Pod network is not there.
	NeverReady int `json:"neverReady"`
	// Unreachable is how long the kubelets of new nodes refuse connections
	// after their node has become ready. It stays until it is set to 0.
	Unreachable metav1.Duration `json:"unreachable"`
	// DropsOnBind is how many of the next Pods lose their node at the moment
	// that they are bound to it.
	DropsOnBind int `json:"dropsOnBind"`
}

// Check tells what is out of range. Values are refused, never bent.
func (s Settings) Check() error {
	for _, count := range []struct {
		name  string
		value int
	}{
		{"failing-boots", s.FailingBoots}, {"never-ready", s.NeverReady}, {"drops-on-bind", s.DropsOnBind},
	} {
		if count.value < 0 {
			return fmt.Errorf("%w: %s is %d; it must not be negative", ErrSettings, count.name, count.value)
		}
	}
	if s.Unreachable.Duration < 0 {
		return fmt.Errorf("%w: unreachable is %s; it must not be negative", ErrSettings, s.Unreachable.Duration)
	}
	return nil
}

// Change is a change of some settings; nil leaves one as it is.
type Change struct {
	FailingBoots *int             `json:"failingBoots,omitempty"`
	NeverReady   *int             `json:"neverReady,omitempty"`
	Unreachable  *metav1.Duration `json:"unreachable,omitempty"`
	DropsOnBind  *int             `json:"dropsOnBind,omitempty"`
}

// With gives the settings after a change.
func (s Settings) With(change Change) Settings {
	if change.FailingBoots != nil {
		s.FailingBoots = *change.FailingBoots
	}
	if change.NeverReady != nil {
		s.NeverReady = *change.NeverReady
	}
	if change.Unreachable != nil {
		s.Unreachable = *change.Unreachable
	}
	if change.DropsOnBind != nil {
		s.DropsOnBind = *change.DropsOnBind
	}
	return s
}

// None is the change that ends all faults.
func None() Change {
	return Change{FailingBoots: new(0), NeverReady: new(0), Unreachable: new(metav1.Duration{}), DropsOnBind: new(0)}
}
