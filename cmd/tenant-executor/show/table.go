package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// Tone is what a cell means; on a terminal it has a colour.
type Tone string

// The tones, by the escape sequences of their colours.
const (
	Neutral Tone = ""
	Good    Tone = "\x1b[32m"
	Waiting Tone = "\x1b[33m"
	Bad     Tone = "\x1b[31m"
	Faint   Tone = "\x1b[2m"
)

const toneEnd = "\x1b[0m"

// gap is what stands between two columns.
const gap = "  "

// Cell is one cell of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text is a cell without a tone. An empty one shows as "-".
func Text(text string) Cell { return Cell{Text: text} }

// Table is a table for a person. Cells may hold what others wrote, such as the
// names of jobs: what a terminal would take for commands is not passed on.
type Table struct {
	// Coloured is whether cells have their colours.
	Coloured bool
	// Least are the least widths of the columns, for rows that continue another
	// table.
	Least []int

	rows [][]Cell
}

// Head sets the names of the columns.
func (t *Table) Head(names ...string) {
	head := make([]Cell, len(names))
	for i, name := range names {
		head[i] = Cell{Text: name, Tone: Faint}
	}
	t.rows = append(t.rows, head)
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.rows = append(t.rows, cells) }

// Write writes the table.
func (t *Table) Write(out io.Writer) error {
	widths := slices.Clone(t.Least)
	for _, row := range t.rows {
		for i := range row {
			row[i].Text = clean(row[i].Text)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	var text strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			shown := cell.Text
			if t.Coloured && cell.Tone != Neutral {
				shown = string(cell.Tone) + shown + toneEnd
			}
			text.WriteString(shown)
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text)) + gap)
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// clean is a text on one line, without what a terminal acts on.
func clean(text string) string {
	return cmp.Or(joblog.Harmless(text), "-")
}

// Age is how long something has lasted, short as in a table: 8s, 5m12s, 3h4m,
// 2d7h.
func Age(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch hours, minutes, seconds := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60; {
	case d < time.Minute:
		return fmt.Sprintf("%ds", seconds)
	case d < time.Hour:
		return pair(minutes, "m", seconds, "s")
	case hours < 48:
		return pair(hours, "h", minutes, "m")
	default:
		return pair(hours/24, "d", hours%24, "h")
	}
}

func pair(a int, unitA string, b int, unitB string) string {
	if b == 0 {
		return fmt.Sprintf("%d%s", a, unitA)
	}
	return fmt.Sprintf("%d%s%d%s", a, unitA, b, unitB)
}
