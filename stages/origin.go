package stages

import (
	"fmt"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/inherit"
)

// Origin is the runner's own configuration, where settings were inherited
// from it.
type Origin struct {
	File   inherit.File
	Runner inherit.Runner
	// Rows are what became of each key.
	Rows []inherit.Row
}

// noteSlots and noteKeys are state files with when something was said last.
const (
	noteSlots = "said-slots"
	noteKeys  = "said-keys"
)

// sayPause is how long something is not said again.
const sayPause = 24 * time.Hour

// warnOfOrigin warns of what does not fit between the runner's configuration
// and the driver's, once a day each. Like warnOfExpiry it speaks to the reader
// of the runner's own log.
func (d *Driver) warnOfOrigin() {
	if d.origin == nil {
		return
	}
	if text := inherit.Slots(d.origin.File, d.origin.Runner, d.settings.Tenant.Ceiling); text != "" {
		d.onceADay(noteSlots, text)
	}
	var lost []string
	for _, row := range d.origin.Rows {
		if row.Lost() {
			lost = append(lost, row.Key+" ("+row.Note+")")
		}
	}
	if len(lost) > 0 {
		d.onceADay(noteKeys, fmt.Sprintf("of runner %s in %s these keys are not carried over: %s",
			d.origin.Runner.Label(), d.origin.File.Name, strings.Join(lost, "; ")))
	}
}

// onceADay warns, unless the very same was said less than a day ago. What
// cannot be noted is said each time.
func (d *Driver) onceADay(note, text string) {
	now := d.clock.Now()
	if data, err := d.state.ReadFile(note); err == nil {
		said, last, _ := strings.Cut(string(data), "\n")
		at, err := time.Parse(time.RFC3339, said)
		if err == nil && last == text && now.Sub(at) < sayPause && !at.After(now) {
			return
		}
	}
	d.log.Warn("%s", text)
	_ = d.state.WriteFile(note, []byte(now.UTC().Format(time.RFC3339)+"\n"+text))
}
