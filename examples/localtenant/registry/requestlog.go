package registry

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// requestLog writes one line for each answered request.
type requestLog struct {
	mu  sync.Mutex
	out io.Writer
	now func() time.Time
}

// newRequestLog returns a log to out, or nil, which wraps nothing.
func newRequestLog(out io.Writer) *requestLog {
	if out == nil {
		return nil
	}
	return &requestLog{out: out, now: time.Now}
}

// wrap logs what next answers, with the name of the listener.
func (l *requestLog) wrap(listener string, next http.Handler) http.Handler {
	if l == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := l.now()
		counted := &countingWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(counted, r)
		took := l.now().Sub(started).Round(time.Millisecond)
		l.mu.Lock()
		defer l.mu.Unlock()
		// A log that cannot be written must not fail a pull.
		_, _ = fmt.Fprintf(l.out, "%s %s %s %s %s %d %d bytes %s\n", started.UTC().Format(time.RFC3339),
			r.RemoteAddr, listener, r.Method, r.URL.Path, counted.status, counted.bytes, took)
	})
}

// countingWriter remembers what a handler answered.
type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the real writer.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
