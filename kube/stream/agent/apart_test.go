package agent_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// separated is output with its streams told apart.
type separated struct{ stdout, stderr, all strings.Builder }

// take takes what a frame has of the output; false if it is no output.
func (s *separated) take(t *testing.T, f agent.Frame, from int64) bool {
	t.Helper()
	to := &s.stdout
	switch f.Kind {
	case agent.KindData:
	case agent.KindErrors:
		to = &s.stderr
	default:
		return false
	}
	if int64(f.Offset) != from+int64(s.all.Len()) {
		t.Fatalf("output at %d, want %d", f.Offset, from+int64(s.all.Len()))
	}
	to.Write(f.Payload)
	s.all.Write(f.Payload)
	return true
}

func apart(stage string, script []byte) agent.Request {
	r := request(stage, script)
	r.Apart = true
	return r
}

// The streams come apart, whole and each in its order, also over connections
// that break, and to those that only look.
func TestStreamsApart(t *testing.T) {
	root := t.TempDir()
	const lines = 30_000
	script := []byte(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); echo out $i; echo err $i >&2; done; exit 3`, lines))
	var stdout, stderr strings.Builder
	for i := range lines {
		fmt.Fprintf(&stdout, "out %d\n", i+1)
		fmt.Fprintf(&stderr, "err %d\n", i+1)
	}
	var got separated
	for connections := 0; ; connections++ {
		if connections > 100 {
			t.Fatal("the stage does not end")
		}
		c := connect(t, root)
		r := apart("apart", script)
		if connections > 0 {
			r = request("apart", nil)
		}
		c.open(r, map[bool][]byte{true: script}[connections == 0], int64(got.all.Len()))
		if f := c.next(); f.Kind != agent.KindBegun || len(f.Payload) == 0 {
			t.Fatalf("got %c %q, want that the stage keeps its streams apart", f.Kind, f.Payload)
		}
		frames := 0
		f := c.next()
		for ; frames < 400+connections*1000 && got.take(t, f, 0); frames++ {
			f = c.next()
		}
		if f.Kind == agent.KindEnd {
			if connections == 0 {
				t.Fatal("no connection has broken")
			}
			if status, err := agent.ParseStatus(f.Payload); err != nil || status.Exit != 3 {
				t.Errorf("status %+v, %v", status, err)
			}
			break
		}
		c.cut()
	}
	if got.stdout.String() != stdout.String() || got.stderr.String() != stderr.String() {
		t.Errorf("%d bytes of stdout, want %d; %d of stderr, want %d, or others",
			got.stdout.Len(), stdout.Len(), got.stderr.Len(), stderr.Len())
	}

	var seen separated
	c := connect(t, root)
	c.open(looking("apart", true), nil, 0)
	from := c.begun()
	f := c.next()
	for seen.take(t, f, from) {
		f = c.next()
	}
	if seen.all.String() != got.all.String()[from:] {
		t.Errorf("somebody who looks sees %d bytes from %d on, or others", seen.all.Len(), from)
	}
}

// What a script writes one after the other comes in that order, if the one has
// arrived before the other is written.
func TestStreamsInOrderOfArrival(t *testing.T) {
	root, first, second := t.TempDir(), fifo(t), fifo(t)
	script := []byte("echo one\nread x <" + first + "\necho two >&2\nread x <" + second + "\necho three")
	c := connect(t, root)
	c.open(apart("order", script), script, 0)
	c.begun()
	var got []string
	for f := c.next(); f.Kind != agent.KindEnd; f = c.next() {
		got = append(got, fmt.Sprintf("%c %s", f.Kind, f.Payload))
		if len(got) < 3 {
			release(t, "read x <"+[]string{first, second}[len(got)-1])
		}
	}
	if want := []string{"D one\n", "R two\n", "D three\n"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A stage that was not asked to keeps nothing apart, and pays nothing for it.
func TestStreamsTogether(t *testing.T) {
	root := t.TempDir()
	out, _ := run(t, root, "together", "echo one; echo two >&2; echo three")
	if out != "one\ntwo\nthree\n" {
		t.Errorf("got %q", out)
	}
	if found, _ := filepath.Glob(filepath.Join(root, "stages", "*", "marks.*")); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// A background process that holds both pipes does not hold the stage.
func TestStreamsApartOfABackgroundProcess(t *testing.T) {
	root := t.TempDir()
	script := []byte("sleep 1000 & echo out; echo err >&2; exit 5")
	c := connect(t, root)
	c.open(apart("background", script), script, 0)
	c.begun()
	var got separated
	f := c.next()
	for got.take(t, f, 0) {
		f = c.next()
	}
	status, err := agent.ParseStatus(f.Payload)
	if f.Kind != agent.KindEnd || err != nil || status.Exit != 5 || got.stdout.String() != "out\n" || got.stderr.String() != "err\n" {
		t.Errorf("frame %c, %+v, %v; stdout %q, stderr %q", f.Kind, status, err, got.stdout.String(), got.stderr.String())
	}
}
