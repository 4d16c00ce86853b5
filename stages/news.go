package stages

import (
	"fmt"
	"regexp"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// news tells the reader of the job log each change of a wait once, and now and
// then that it still lasts.
type news struct {
	log   joblog.Log
	clock interface{ Now() time.Time }
	said  string
	at    time.Time
}

// remindEvery is how often it is said that nothing has changed.
const remindEvery = time.Minute

// volatile is what changes in a line without being news: the port that a node
// asked from, and how many wait behind somebody.
var volatile = regexp.MustCompile(`:\d+->| of \d+ in the queue`)

// say writes a line unless the same was said; then it adds how long it has lasted.
func (n *news) say(lasted time.Duration, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	gist, now := volatile.ReplaceAllString(line, ""), n.clock.Now()
	switch {
	case gist != n.said:
		n.log.Info("%s", line)
	case now.Sub(n.at) >= remindEvery:
		n.log.Info("%s (for %s)", line, joblog.Duration(lasted))
	default:
		return
	}
	n.said, n.at = gist, now
}
