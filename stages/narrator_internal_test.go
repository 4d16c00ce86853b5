package stages

import (
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/capacity"
)

func TestBootsOfLate(t *testing.T) {
	for _, test := range []struct {
		boots  []time.Duration
		waited time.Duration
		want   string
	}{
		{nil, time.Hour, ""},
		{[]time.Duration{40 * time.Second, 40 * time.Second}, 0, "; boots took 40 s of late"},
		{[]time.Duration{40 * time.Second, 40 * time.Second, time.Minute}, 0, "; boots took 40 s of late, 1 min at most"},
		{[]time.Duration{40 * time.Second, 40 * time.Second, time.Minute}, 75 * time.Second, "; boots took 40 s of late, 1 min at most"},
		{[]time.Duration{40 * time.Second, 40 * time.Second, time.Minute}, 76 * time.Second, "; this takes longer than any boot of late (1 min at most)"},
	} {
		n := narrator{gateway: capacity.Gateway{Boots: test.boots}}
		if got := n.boots(test.waited); got != test.want {
			t.Errorf("boots of %v, waited %s: %q, want %q", test.boots, test.waited, got, test.want)
		}
	}
}
