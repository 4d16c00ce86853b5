package stream_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
	"github.com/socialweb-computer/tenant-executor/kube/stream"
)

// screen is a terminal's output, of which a test waits for parts.
type screen struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) waitFor(text string) {
	for {
		s.mu.Lock()
		found := strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if found {
			return
		}
		<-s.changed
	}
}

// A command on a terminal has one output, gets what is typed as it is typed, and
// hears of each size.
func TestTerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.OnExec(func(e *faultserver.Exec) {
		if e.Stderr != nil || e.Resize == nil {
			t.Error("the command is not on a terminal")
			e.Exit(1)
			return
		}
		sizes := json.NewDecoder(e.Resize)
		var first, second stream.Size
		if err := sizes.Decode(&first); err != nil {
			t.Error(err)
		}
		line, _ := bufio.NewReader(e.Stdin).ReadString('\n')
		_, _ = io.WriteString(e.Stdout, "typed "+line)
		if err := sizes.Decode(&second); err != nil {
			t.Error(err)
		}
		if first != (stream.Size{Width: 80, Height: 24}) || second != (stream.Size{Width: 132, Height: 50}) {
			t.Errorf("the sizes are %+v and %+v", first, second)
		}
		e.Exit(9)
	})
	in, typed := io.Pipe()
	out := &screen{changed: make(chan struct{}, 1)}
	sizes := make(chan stream.Size, 1)
	sizes <- stream.Size{Width: 80, Height: 24}
	go func() {
		_, _ = io.WriteString(typed, "ls\n")
		out.waitFor("typed ls\n")
		sizes <- stream.Size{Width: 132, Height: 50}
	}()
	code, err := b.runner.Run(t.Context(), stream.Command{
		Namespace: namespace, Pod: podName, Container: "build", Args: []string{"sh"}, Stdin: in, Stdout: out, Sizes: sizes,
	})
	if code != 9 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	for _, r := range b.server.Requests().Of("create", "pods/exec") {
		if !strings.Contains(r.Query, "tty=true") || strings.Contains(r.Query, "stderr=true") {
			t.Errorf("asked for %s", r.Query)
		}
	}
}
