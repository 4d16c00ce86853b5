package testbed

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// gates let a script in a Pod wait for the test, and the test for a script: a
// script asks for /gates/NAME until it is let through.
type gates struct {
	mu   sync.Mutex
	seen map[string]chan struct{}
	open map[string]bool
}

func newGates() *gates {
	return &gates{seen: map[string]chan struct{}{}, open: map[string]bool{}}
}

func (g *gates) arrival(name string) chan struct{} {
	if g.seen[name] == nil {
		g.seen[name] = make(chan struct{})
	}
	return g.seen[name]
}

// ServeHTTP answers a script that waits.
func (g *gates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/gates/")
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.arrival(name):
	default:
		close(g.arrival(name))
	}
	if !g.open[name] {
		http.Error(w, "closed", http.StatusNotFound)
	}
}

// GateURL is where a script asks whether a gate is open.
func (b *Bed) GateURL(name string) string { return b.url + "/gates/" + name }

// Gate is shell for a script that waits until the test opens the gate. It
// works in every image that has wget, or bash.
func (b *Bed) Gate(name string) string {
	host, port, _ := strings.Cut(strings.TrimPrefix(b.url, "http://"), ":")
	return fmt.Sprintf(`until wget -q -O /dev/null %s/gates/%s 2>/dev/null || `+
		`bash -c 'exec 3<>/dev/tcp/%s/%s && printf "GET /gates/%s HTTP/1.0\r\n\r\n" >&3 && read -r l <&3 && case $l in *200*) ;; *) false;; esac' 2>/dev/null; do sleep 0.2; done`,
		b.url, name, host, port, name)
}

// Arrived waits until a script is at the gate.
func (b *Bed) Arrived(ctx context.Context, name string) error {
	b.gates.mu.Lock()
	arrival := b.gates.arrival(name)
	b.gates.mu.Unlock()
	select {
	case <-ctx.Done():
		return fmt.Errorf("no script came to gate %s: %w", name, ctx.Err())
	case <-arrival:
		return nil
	}
}

// Open opens a gate for good.
func (b *Bed) Open(name string) {
	b.gates.mu.Lock()
	defer b.gates.mu.Unlock()
	b.gates.open[name] = true
}

// Until waits for something to become true, looking every fraction of a
// second.
func Until(ctx context.Context, what string, limit time.Duration, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := holds(ctx)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w for %s (%s), last error: %v", ErrTimeout, what, limit, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
