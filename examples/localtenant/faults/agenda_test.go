package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCountsGoDown(t *testing.T) {
	for name, test := range map[string]struct {
		change Change
		take   func(*Agenda) bool
	}{
		"failing boots": {Change{FailingBoots: new(2)}, (*Agenda).TakeFailingBoot},
		"never ready":   {Change{NeverReady: new(2)}, (*Agenda).TakeNeverReady},
		"drops on bind": {Change{DropsOnBind: new(2)}, (*Agenda).TakeDropOnBind},
	} {
		var agenda Agenda
		if test.take(&agenda) {
			t.Errorf("%s: there is one on an empty agenda", name)
		}
		if _, err := agenda.Set(test.change); err != nil {
			t.Fatal(err)
		}
		taken := 0
		for range 5 {
			if test.take(&agenda) {
				taken++
			}
		}
		if taken != 2 {
			t.Errorf("%s: %d of 2 were taken", name, taken)
		}
		if diff := cmp.Diff(Settings{}, agenda.Settings()); diff != "" {
			t.Errorf("%s: afterwards (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnreachableStays(t *testing.T) {
	var agenda Agenda
	if _, err := agenda.Set(Change{Unreachable: &metav1.Duration{Duration: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := agenda.Unreachable(); got != time.Minute {
			t.Errorf("unreachable for %s, want a minute for every node", got)
		}
	}
	if _, err := agenda.Set(None()); err != nil {
		t.Fatal(err)
	}
	if got := agenda.Settings(); got != (Settings{}) {
		t.Errorf("after None: %+v", got)
	}
}

func TestBadSettings(t *testing.T) {
	for name, change := range map[string]Change{
		"failing-boots": {FailingBoots: new(-1), NeverReady: new(7)},
		"never-ready":   {NeverReady: new(-1)},
		"drops-on-bind": {DropsOnBind: new(-2)},
		"unreachable":   {Unreachable: &metav1.Duration{Duration: -1}},
	} {
		var agenda Agenda
		if _, err := agenda.Set(change); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v, want ErrSettings", name, err)
		}
		if got := agenda.Settings(); got != (Settings{}) {
			t.Errorf("%s: a refused change has changed something: %+v", name, got)
		}
	}
}
