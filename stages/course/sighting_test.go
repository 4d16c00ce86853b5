package course_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

func TestSightings(t *testing.T) {
	book, dir := openBook(t)
	c := newClock()
	see := func(cluster string, nodes ...string) {
		if err := book.See(cluster, nodes, c.Now()); err != nil {
			t.Fatal(err)
		}
	}
	see("a") // nothing is held
	begun := c.now
	for range 4 {
		see("a", "n1", "n2")
		see("b", "n1")
		c.pass(10 * time.Second)
	}
	see("a", "n2")
	c.pass(2 * time.Minute) // nobody looked, or n1 was free
	see("a", "n1")
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	want := []course.Sighting{
		{Cluster: "a", Node: "n1", From: at(0), To: at(30)}, {Cluster: "a", Node: "n2", From: at(0), To: at(40)},
		{Cluster: "b", Node: "n1", From: at(0), To: at(30)}, {Cluster: "a", Node: "n1", From: at(160), To: at(160)},
	}
	if diff := cmp.Diff(want, book.Sightings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 500 {
		c.pass(2 * time.Minute)
		see("a", fmt.Sprint("n", i))
	}
	all := book.Sightings()
	if len(all) != 300 || all[299].Node != "n499" {
		t.Errorf("%d sightings, the last %+v", len(all), all[len(all)-1])
	}
	if info, err := os.Stat(filepath.Join(dir, "placeholders")); err != nil || info.Size() > 60<<10 {
		t.Errorf("%v, %v", info, err)
	}
	// A file that was cut off counts as none, and is written anew.
	if err := os.WriteFile(filepath.Join(dir, "placeholders"), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	see("a", "n1")
	if all := book.Sightings(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	var none *course.Book
	if err := none.See("a", []string{"n1"}, c.Now()); err != nil || none.Sightings() != nil {
		t.Error("without a folder", err)
	}
}
