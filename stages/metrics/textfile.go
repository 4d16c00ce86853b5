package metrics

import (
	"fmt"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// mostWrites is how often a process writes the file because others have counted
// meanwhile. They write it as well.
const mostWrites = 5

// WriteTextfile counts what has ended, and writes the counts to a file for the
// textfile collector of Prometheus' node exporter. Of several processes that
// write at once, the last to write has counted all.
func WriteTextfile(path string, book *course.Book, now time.Time, gauges ...Gauge) error {
	for range mostWrites {
		totals, number, folded := Fold(book, now)
		text, err := totals.Text(gauges...)
		if err != nil {
			return err
		}
		if err := writeText(path, text); err != nil {
			return fmt.Errorf("the metrics in %s (metrics.textfile): %w", path, err)
		}
		if folded != nil {
			return fmt.Errorf("counting for the metrics: %w", folded)
		}
		// Another process may have written newer counts before these.
		if _, highest, err := read(book); err == nil && highest == number {
			return nil
		}
	}
	return nil
}
