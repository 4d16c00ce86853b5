package course_test

import (
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// What a stage pays for the course of its job, in a full book.
func BenchmarkStep(b *testing.B) {
	book, err := course.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	now := newClock()
	for id := range int64(course.Most) {
		e, err := course.Begin(book, aJob(id+1), "aa01", course.Prepare, now.Now)
		if err != nil {
			b.Fatal(err)
		}
		now.pass(time.Second)
		if _, _, err := e.End(nil); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		e, err := course.Begin(book, aJob(course.Most), "aa01", "build_script", now.Now)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := e.End(nil); err != nil {
			b.Fatal(err)
		}
	}
}
