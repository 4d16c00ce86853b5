package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// TestMain lets the test program be its own supervisor: agent.Spawn starts
// /proc/self/exe.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == agent.VerbSupervise {
		if err := agent.Supervise(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestExitCodesAndSignals(t *testing.T) {
	root := t.TempDir()
	for script, want := range map[string]agent.Status{
		"exit 0":                       {},
		"exit 1":                       {Exit: 1},
		"exit 42":                      {Exit: 42},
		"exit 137":                     {Exit: 137},
		"exit 255":                     {Exit: 255},
		"kill -KILL $$":                {Signal: 9},
		"kill -TERM $$":                {Signal: 15},
		"kill -SEGV $$":                {Signal: 11},
		"nosuchcommand 2>/dev/null":    {Exit: 127},
		"exec >&- 2>&-; sleep 0.1; :":  {},
		"exec >&- 2>&-; exit 3":        {Exit: 3},
		"read x; echo got:$x; exit $?": {},
	} {
		out, got := run(t, root, "s"+strconv.Itoa(len(script))+strconv.Itoa(want.Exit)+strconv.Itoa(want.Signal), script)
		if got != want {
			t.Errorf("script %q ended with %+v, want %+v; output %q", script, got, want, out)
		}
	}
}

func TestOutputIsByteForByteAndInOrder(t *testing.T) {
	script := `i=0
while [ $i -lt 1000 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done
printf '\200\377\000x\r\n'
head -c 200000 /dev/zero | tr '\0' 'z'`
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	want.WriteString("\200\377\000x\r\n" + strings.Repeat("z", 200000))
	out, status := run(t, t.TempDir(), "order", script)
	if out != want.String() || status.Exit != 0 {
		t.Errorf("output of %d bytes differs from the %d that the script wrote (status %+v)", len(out), want.Len(), status)
	}
}

func TestStartedTwiceRunsOnce(t *testing.T) {
	root, counter := t.TempDir(), filepath.Join(t.TempDir(), "count")
	script := []byte("echo run >>" + counter + "\necho ready\nread x <" + fifo(t) + "\nexit 7")
	first, second := connect(t, root), connect(t, root)
	first.open(request("once", script), script, 0)
	second.open(request("once", script), script, 0)
	first.begun()
	second.begun()
	first.readUntil("ready\n")
	second.readUntil("ready\n")
	release(t, string(script))
	for _, c := range []*connection{first, second} {
		if _, status := c.end(6); status.Exit != 7 {
			t.Errorf("status %+v, want exit 7", status)
		}
	}
	third := connect(t, root)
	third.open(request("once", script), script, 0)
	third.begun()
	if out, status := third.end(0); out != "ready\n" || status.Exit != 7 {
		t.Errorf("after the end: output %q, status %+v", out, status)
	}
	if b, _ := os.ReadFile(counter); string(b) != "run\n" {
		t.Errorf("the script ran %d times", strings.Count(string(b), "run"))
	}
}

// fifo makes a named pipe on which a script can wait for the test.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// release lets a script go on that waits at the fifo it names after "read x <".
func release(t *testing.T, script string) {
	t.Helper()
	_, rest, _ := strings.Cut(script, "read x <")
	path, _, _ := strings.Cut(rest, "\n")
	if err := os.WriteFile(path, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
}

func TestResumeAfterEveryCut(t *testing.T) {
	root := t.TempDir()
	script := []byte("seq 1 200000")
	var want bytes.Buffer
	for i := 1; i <= 200000; i++ {
		fmt.Fprintln(&want, i)
	}
	var got bytes.Buffer
	for connections := 1; ; connections++ {
		c := connect(t, root)
		if connections == 1 {
			c.open(request("resume", script), script, 0)
		} else {
			c.open(request("resume", nil), nil, int64(got.Len()))
		}
		if from := c.begun(); from != int64(got.Len()) {
			t.Fatalf("the output goes on at %d, want %d", from, got.Len())
		}
		for frames := 0; frames < 3; frames++ {
			f := c.next()
			if f.Kind == agent.KindEnd {
				if !bytes.Equal(got.Bytes(), want.Bytes()) {
					t.Fatalf("%d bytes over %d connections differ from the %d written", got.Len(), connections, want.Len())
				}
				if connections < 5 {
					t.Fatalf("only %d connections: nothing was resumed", connections)
				}
				return
			}
			got.Write(f.Payload)
			c.send(agent.Frame{Kind: agent.KindAck, Offset: uint64(got.Len())})
		}
		c.cut()
	}
}

func TestAttachToAnUnknownStage(t *testing.T) {
	c := connect(t, t.TempDir())
	c.open(request("nobody", nil), nil, 0)
	if f := c.next(); f.Kind != agent.KindMissing {
		t.Errorf("got frame %c, want that it is missing", f.Kind)
	}
}

func TestShortOrChangedScriptNeverRuns(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	script := []byte("touch " + marker + "\n")
	t.Run("cut off", func(t *testing.T) {
		root := t.TempDir()
		c := connect(t, root)
		c.open(request("s", script), script[:10], 0)
		c.cut()
		if err := <-c.done; err == nil {
			t.Error("the front took half a script")
		}
		c = connect(t, root)
		c.open(request("s", nil), nil, 0)
		if f := c.next(); f.Kind != agent.KindMissing {
			t.Errorf("half a script left a stage: frame %c", f.Kind)
		}
	})
	for name, spoil := range map[string]func(*connection){
		"cut off one way": func(c *connection) { _ = c.to.Close() },
		"damaged":         func(c *connection) { _, _ = c.to.Write([]byte(strings.Repeat("noise", 100))) },
		"among others":    func(c *connection) { c.send(agent.Frame{Kind: agent.KindStop}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, t.TempDir())
			c.open(request("s", script), script[:10], 0)
			spoil(c)
			// The stage is not refused: the driver comes again.
			if f, err := c.frames.Next(); err == nil {
				t.Errorf("got frame %c %q", f.Kind, f.Payload)
			}
		})
	}
	t.Run("changed", func(t *testing.T) {
		c := connect(t, t.TempDir())
		changed := bytes.Replace(script, []byte("ran"), []byte("RAN"), 1)
		c.open(request("s", script), changed, 0)
		if f := c.next(); f.Kind != agent.KindRefused || !strings.Contains(string(f.Payload), "checksum") {
			t.Errorf("got frame %c %q, want a refusal", f.Kind, f.Payload)
		}
	})
	if _, err := os.Stat(marker); err == nil {
		t.Error("the script ran")
	}
}

// A background process that holds the output does not hold the stage, and
// lives on.
func TestBackgroundProcessIsLeftAlone(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	gate := fifo(t)
	script := "(read x <" + gate + "\necho late; echo alive >" + dir + "/alive) &\necho done; exit 3"
	out, status := run(t, root, "background", script)
	if out != "done\n" || status.Exit != 3 {
		t.Errorf("output %q, status %+v", out, status)
	}
	release(t, script)
	waitFor(t, "the background process", func() bool {
		b, err := os.ReadFile(dir + "/alive")
		return err == nil && string(b) == "alive\n"
	})
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
