//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// One job more than there may be nodes: each of the others has a node booted, the
// last one waits for one of theirs. Its wait is a queue and no boot, whenever its
// Pod was made, and whether the driver knows the ceiling or not.
func TestAQueueIsNoBoot(t *testing.T) {
	for _, test := range []struct {
		ceiling, told int
	}{{1, 10}, {2, 2}} {
		t.Run(fmt.Sprintf("ceiling %d, told %d", test.ceiling, test.told), func(t *testing.T) {
			fromZero(t, "--boot-time", "3s", "--hold", "3s", "--ceiling", strconv.Itoa(test.ceiling))
			config, err := bed.WriteConfig(testbed.Namespace, "")
			if err != nil {
				t.Fatal(err)
			}
			state := filepath.Join(t.TempDir(), "state")
			replaceInFile(t, config, filepath.Join(filepath.Dir(config), "state"), state)
			if test.told != bed.Ceiling {
				replaceInFile(t, config, fmt.Sprintf("ceiling = %d", bed.Ceiling), fmt.Sprintf("ceiling = %d", test.told))
			}
			var waits []func() testbed.Outcome
			for range test.ceiling + 1 {
				waits = append(waits, start(t, config, testbed.WithoutSources(bed.Job("sleep 10")), runner.Options{}))
			}
			for _, wait := range waits {
				wantPassed(t, wait())
			}
			text := outside(t, config, "stats", "--output", "json")
			var got statistics
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			kinds := map[string]int{}
			queue := 0.0
			for _, j := range got.Jobs {
				kinds[j.Kind]++
				queue = max(queue, j.Waits.Queue)
				if queued := j.Kind == "queued"; queued != (j.Waits.Queue > 0) || queued && (j.Waits.Queue != j.Waits.Node || j.Waits.Node < 10) {
					t.Errorf("job %d: %+v", j.Job, j)
				}
			}
			if kinds["cold"] != test.ceiling || kinds["queued"] != 1 {
				t.Errorf("the starts are %v:\n%s", kinds, text)
			}
			if boots := bootsIn(t, state); len(boots) != test.ceiling || slices.Max(boots).Seconds() >= queue {
				t.Errorf("the boots are %v, the queue took %.0f s", boots, queue)
			}
		})
	}
}

// bootsIn are the boots that a state folder remembers.
func bootsIn(t *testing.T, state string) []time.Duration {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "boots-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v", err, files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var boots []time.Duration
	for line := range strings.Lines(string(text)) {
		ms, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		boots = append(boots, time.Duration(ms)*time.Millisecond)
	}
	return boots
}
