package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// exitUsage is the exit code for settings that cannot be read.
const exitUsage = 2

// probe is a run of the program.
type probe struct {
	args        []string
	lookup      func(string) (string, bool)
	out, errOut io.Writer
	after       func(time.Duration) <-chan time.Time
	mu          sync.Mutex // one line at a time
}

func newProbe(args []string, lookup func(string) (string, bool), out, errOut io.Writer, after func(time.Duration) <-chan time.Time) *probe {
	return &probe{args: args, lookup: lookup, out: out, errOut: errOut, after: after}
}

// say prints one line. Whoever reads it may have gone.
func (p *probe) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// run does what the settings say until the context is over or it ends by
// itself, and returns the exit code.
func (p *probe) run(ctx context.Context) int {
	wants, err := readSettings(p.lookup)
	if err != nil {
		_, _ = fmt.Fprintf(p.errOut, "service-probe: %v\n", err)
		return exitUsage
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.say("service-probe: started")
	var dead <-chan time.Time // nil: never
	if wants.dies {
		dead = p.after(wants.dieAfter)
	}
	failed := make(chan error, 1)
	if wants.port != 0 {
		go func() { failed <- p.serve(ctx, wants) }()
	}
	go p.printLines(ctx, wants)
	var taken [][]byte
	var hungry <-chan time.Time
	if wants.memory > 0 {
		hungry = p.after(wants.memoryAfter)
	}
	for {
		select {
		case <-hungry:
			taken = take(wants.memory)
			p.say("service-probe: holds %d MiB", len(taken))
		case <-dead:
			p.say("service-probe: ends by itself with exit code %d", wants.exitCode)
			return wants.exitCode
		case err := <-failed:
			if ctx.Err() != nil {
				failed = nil // the end of the context is its own case
				continue
			}
			_, _ = fmt.Fprintf(p.errOut, "service-probe: %v\n", err)
			return 1
		case <-ctx.Done():
			p.say("service-probe: was told to stop, ends in %s", wants.stopAfter)
			<-p.after(wants.stopAfter)
			return 0
		}
	}
}

// take returns so many MiB that have been written to, so that they count.
func take(count int) [][]byte {
	const mib, page = 1 << 20, 4 << 10
	taken := make([][]byte, count)
	for i := range taken {
		taken[i] = make([]byte, mib)
		for at := 0; at < mib; at += page {
			taken[i][at] = 1
		}
	}
	return taken
}

func (p *probe) printLines(ctx context.Context, wants settings) {
	for i := range wants.lines {
		if i > 0 && wants.lineEvery > 0 {
			select {
			case <-p.after(wants.lineEvery):
			case <-ctx.Done():
				return
			}
		}
		p.say("service-probe: line %d of %d", i+1, wants.lines)
	}
}

// serve answers HTTP at the port after the wait.
func (p *probe) serve(ctx context.Context, wants settings) error {
	select {
	case <-p.after(wants.listenAfter):
	case <-ctx.Done():
		return ctx.Err()
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(wants.port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p.say("service-probe: listens on port %d", wants.port)
	server := &http.Server{Handler: p.routes(), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return server.Serve(listener)
}

// routes tell a client how the program was started.
func (p *probe) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		if err != nil {
			name = err.Error()
		}
		fmt.Fprintf(w, "service-probe on %s\n", name)
	})
	mux.HandleFunc("GET /args", func(w http.ResponseWriter, _ *http.Request) {
		// Strings always have a JSON form, and the client may have gone.
		_ = json.NewEncoder(w).Encode(p.args)
	})
	mux.HandleFunc("GET /env/{name}", func(w http.ResponseWriter, r *http.Request) {
		value, found := p.lookup(r.PathValue("name"))
		if !found {
			http.Error(w, r.PathValue("name")+" is not set", http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, value)
	})
	return mux
}
