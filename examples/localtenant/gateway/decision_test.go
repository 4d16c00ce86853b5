package gateway

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	settings := Defaults() // ceiling 10, 8 Pods a node, hold 2 min
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	with := func(change func(*Settings)) Settings {
		changed := settings
		change(&changed)
		return changed
	}
	for _, test := range []struct {
		name     string
		settings Settings
		view     View
		want     Decision
	}{
		{"nothing at all", settings, View{}, Decision{IdleSince: now}},
		{"the first Pod boots a node", settings, View{Unfinished: 1, IdleSince: ago(time.Hour)}, Decision{Wanted: 1, Boot: 1}},
		{"eight Pods fit one", settings, View{Unfinished: 8, Nodes: 1}, Decision{Wanted: 1}},
		{"the ninth does not", settings, View{Unfinished: 9, Nodes: 1}, Decision{Wanted: 2, Boot: 1}},
		{"what boots already counts", settings, View{Unfinished: 17, Nodes: 1, Booting: 2}, Decision{Wanted: 3}},
		{"the ceiling holds", settings, View{Unfinished: 500, Nodes: 4, Booting: 3}, Decision{Wanted: 10, Boot: 3}},
		{"more nodes than wanted stay", settings, View{Unfinished: 1, Nodes: 5}, Decision{Wanted: 1}},
		{"idleness begins", settings, View{Nodes: 2}, Decision{IdleSince: now, Again: now.Add(2 * time.Minute)}},
		{"the hold passes", settings, View{Nodes: 2, IdleSince: ago(119 * time.Second)}, Decision{IdleSince: ago(119 * time.Second), Again: now.Add(time.Second)}},
		{"the hold is over", settings, View{Nodes: 2, IdleSince: ago(2 * time.Minute)}, Decision{IdleSince: ago(2 * time.Minute), Drop: true}},
		{"not while a node boots", settings, View{Nodes: 2, Booting: 1, IdleSince: ago(time.Hour)}, Decision{IdleSince: ago(time.Hour)}},
		{"a Pod ends the idleness", settings, View{Unfinished: 1, Nodes: 1, IdleSince: ago(time.Hour)}, Decision{Wanted: 1}},
		{
			"no hold drops at once", with(func(s *Settings) { s.Hold = metav1.Duration{} }),
			View{Nodes: 1}, Decision{IdleSince: now, Drop: true},
		},
		{
			"one Pod a node", with(func(s *Settings) { s.PodsPerNode = 1 }),
			View{Unfinished: 3, Nodes: 1}, Decision{Wanted: 3, Boot: 2},
		},
		{
			"paused boots nothing", with(func(s *Settings) { s.Paused = true }),
			View{Unfinished: 3}, Decision{Wanted: 1},
		},
		{
			"paused drops nothing", with(func(s *Settings) { s.Paused = true }),
			View{Nodes: 3, IdleSince: ago(time.Hour)}, Decision{IdleSince: ago(time.Hour)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Decide(test.settings, test.view, now)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsCheck(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Settings)
		ok     bool
	}{
		{"defaults", func(*Settings) {}, true},
		{"ones and zeroes", func(s *Settings) { *s = Settings{Ceiling: 1, PodsPerNode: 1} }, true},
		{"no ceiling", func(s *Settings) { s.Ceiling = 0 }, false},
		{"no Pods per node", func(s *Settings) { s.PodsPerNode = 0 }, false},
		{"negative hold", func(s *Settings) { s.Hold.Duration = -1 }, false},
		{"negative boot time", func(s *Settings) { s.BootTime.Duration = -1 }, false},
	} {
		settings := Defaults()
		test.change(&settings)
		if err := settings.Check(); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
