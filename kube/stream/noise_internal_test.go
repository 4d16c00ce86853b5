package stream

import (
	"testing"
	"time"
)

// An agent that shows that it is there may do so for as long as a stage is quiet. One
// that floods with it is given up.
func TestNoise(t *testing.T) {
	now := time.Unix(1e9, 0)
	var quiet noise
	for range 100_000 {
		if err := quiet.hear(false, now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	var flood noise
	for i := range 3 * mostNoise {
		// Something new makes all before it well.
		err := flood.hear(i == mostNoise-1, now)
		if got, want := err != nil, i >= 2*mostNoise-1; got != want {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	if err := flood.hear(true, now); err != nil {
		t.Error(err)
	}
}
