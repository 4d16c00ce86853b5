package stats

import (
	"fmt"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// Time is a time as people say it: with a tenth below 10 s, since starts and
// stages are often that short.
func Time(s course.Seconds) string {
	if s < 9.95 {
		return fmt.Sprintf("%.1f s", float64(s))
	}
	return joblog.Duration(s.Duration())
}

// Ran is how long the stages of an attempt took, without prepare and cleanup.
func Ran(c course.Course) course.Seconds {
	var sum course.Seconds
	for _, s := range c.Steps {
		if s.Name != course.Prepare && s.Name != course.Cleanup {
			sum += s.Took
		}
	}
	return sum
}
