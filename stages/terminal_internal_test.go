package stages

import (
	"testing"
	"time"
)

// The end of a kept Pod is said at first, and once below each of the marks.
func TestDueToSay(t *testing.T) {
	var said []time.Duration
	last := time.Duration(-1)
	for left := 12 * time.Minute; left >= -5*time.Second; left -= 5 * time.Second {
		if dueToSay(last, left) {
			last = left
			said = append(said, left)
		}
	}
	if len(said) != 4 || said[0] != 12*time.Minute || said[1] != 5*time.Minute || said[2] != time.Minute || said[3] != 10*time.Second {
		t.Errorf("said at %v", said)
	}
	// The time may be cut short, and the announcer may have slept.
	for _, test := range []struct {
		said, left time.Duration
		due        bool
	}{
		{-1, 3 * time.Second, true}, {3 * time.Second, time.Second, false}, {6 * time.Minute, 30 * time.Second, true}, {30 * time.Second, 20 * time.Second, false},
	} {
		if got := dueToSay(test.said, test.left); got != test.due {
			t.Errorf("said at %s, left %s: %t", test.said, test.left, got)
		}
	}
}
