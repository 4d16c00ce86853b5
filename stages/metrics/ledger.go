package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// ledger is the file with the counts. Each change is a file of its own with the
// next number: of several processes that add at once one makes it, and the others
// start again from what it has written. So no course is counted twice or lost,
// without a lock, whenever a process dies.
type ledger struct {
	// Counted are the courses, by the names of their files, that the counts
	// hold and that are still there.
	Counted []string `json:"counted"`
	Series  []series `json:"series"`
}

// ledgerPrefix begins the names of the files.
const ledgerPrefix = "totals-"

func ledgerName(number int64) string { return fmt.Sprintf("%s%012d", ledgerPrefix, number) }

// mostTries is how often a process starts again because another was first.
const mostTries = 20

// Fold adds to the counts what has ended since they were written, and gives
// them with their number. The counts are right also where they could not be
// written down; then there is an error too.
func Fold(book *course.Book, now time.Time) (*Totals, int64, error) {
	for try := 0; ; try++ {
		t, number, err := fold(book, now)
		if !errors.Is(err, fs.ErrExist) || try == mostTries {
			return t, number, err
		}
	}
}

func fold(book *course.Book, now time.Time) (*Totals, int64, error) {
	old, number, err := read(book)
	if err != nil {
		return old.totals(), number, err
	}
	names, err := book.Names()
	if err != nil {
		return old.totals(), number, err
	}
	counted := map[string]bool{}
	for _, name := range old.Counted {
		counted[name] = true
	}
	t := old.totals()
	next := ledger{}
	added := false
	for _, name := range names {
		if !counted[name] {
			c, err := book.Read(name)
			if err != nil || !c.Finished() && c.Result(now) != course.Unknown {
				continue // it is under way, or was cut off
			}
			t.Add(c, now)
			added = true
		}
		next.Counted = append(next.Counted, name)
	}
	if !added {
		return t, number, nil
	}
	next.Series = t.list()
	text, err := json.Marshal(next)
	if err != nil {
		return t, number, fmt.Errorf("writing down the counts: %w", err)
	}
	if err := book.Folder().Create(ledgerName(number+1), append(text, '\n')); err != nil {
		return t, number, err
	}
	forget(book, number)
	return t, number + 1, nil
}

// read is the newest ledger that can be read, with the highest number that
// there is.
func read(book *course.Book) (ledger, int64, error) {
	names, err := book.Folder().List(ledgerPrefix)
	if err != nil {
		return ledger{}, 0, err
	}
	highest := int64(0)
	var found *ledger
	for _, name := range slices.Backward(names) {
		number, err := strconv.ParseInt(strings.TrimPrefix(name, ledgerPrefix), 10, 64)
		if err != nil || ledgerName(number) != name {
			continue
		}
		highest = max(highest, number)
		text, err := book.Folder().ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			// Another process has gone on meanwhile; its own is newer.
			return ledger{}, 0, fs.ErrExist
		}
		var l ledger
		if err == nil && json.Unmarshal(text, &l) == nil {
			found = &l
			break
		}
	}
	if found == nil {
		found = &ledger{}
	}
	return *found, highest, nil
}

// forget removes the ledgers before a number. The one with it stays, for those
// that are just reading it.
func forget(book *course.Book, number int64) {
	names, err := book.Folder().List(ledgerPrefix)
	if err != nil {
		return
	}
	for _, name := range names {
		if name < ledgerName(number) {
			_ = book.Folder().Remove(name) // the next one tries again
		}
	}
}

// totals are the counts of a ledger. Series that this driver does not know, of
// another version of it, are dropped.
func (l ledger) totals() *Totals {
	t := NewTotals()
	for _, s := range l.Series {
		if s.valid() {
			t.all[s.key()] = &s
		}
	}
	return t
}

// list is in a fixed order.
func (t *Totals) list() []series {
	var all []series
	for _, s := range t.all {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b series) int { return strings.Compare(a.key(), b.key()) })
	return all
}
