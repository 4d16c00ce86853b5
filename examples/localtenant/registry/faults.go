package registry

import (
	"net/http"
	"sync/atomic"
	"time"
)

// faults are the ways in which the registry misbehaves on demand.
type faults struct {
	delay atomic.Int64 // time.Duration
	down  atomic.Bool
	after func(time.Duration) <-chan time.Time
}

func newFaults() *faults {
	return &faults{after: time.After}
}

func (f *faults) setDelay(d time.Duration) { f.delay.Store(int64(d)) }

func (f *faults) setDown(down bool) { f.down.Store(down) }

// wrap answers through next, after the delay, unless the registry is down.
func (f *faults) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if delay := time.Duration(f.delay.Load()); delay > 0 {
			select {
			case <-f.after(delay):
			case <-r.Context().Done():
				return // the client has gone
			}
		}
		// Asked after the delay: a request that waited while the registry
		// went down fails, as it would with a real one.
		if f.down.Load() {
			http.Error(w, "the registry is switched off", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
