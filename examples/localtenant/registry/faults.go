package registry

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"sync"
	"time"
)

// Faults are the ways in which the registry misbehaves on demand, at all of
// its listeners. The zero value is a registry that works.
type Faults struct {
	// Delay is put before each answer; not negative.
	Delay time.Duration
	// Down answers 503 Service Unavailable to everything.
	Down bool
	// Refuse closes the listeners: connections are refused, and those that are
	// open are cut. It concerns the whole registry, so it goes with no
	// Repositories.
	Refuse bool
	// RateLimited answers 429 to each GET of a manifest.
	RateLimited bool
	// BytesPerSecond is how fast each blob is sent; 0 is as fast as it can be.
	BytesPerSecond int64
	// Repositories is a pattern (path.Match) of the repositories that the
	// faults concern, for example localtenant/redis or localtenant/entry*. If
	// it is empty they concern all requests. With it, what a node needs in
	// any case (localtenant/pause) can go on working.
	Repositories string
}

// ErrFaults says that faults are asked for which cannot be.
var ErrFaults = errors.New("the registry cannot misbehave like this")

// Check says what is wrong with the values, as an ErrFaults.
func (f Faults) Check() error {
	switch _, err := path.Match(f.Repositories, ""); {
	case err != nil:
		return fmt.Errorf("%w: the repositories %q are not a pattern: %w", ErrFaults, f.Repositories, err)
	case f.Delay < 0:
		return fmt.Errorf("%w: the delay is %s; it must not be negative", ErrFaults, f.Delay)
	case f.BytesPerSecond < 0:
		return fmt.Errorf("%w: the speed is %d bytes per second; it must not be negative (0 ends the fault)", ErrFaults, f.BytesPerSecond)
	case f.Refuse && f.Repositories != "":
		return fmt.Errorf("%w: refused connections concern the whole registry, not the repositories %q alone", ErrFaults, f.Repositories)
	}
	return nil
}

// concern says whether a request meets the faults.
func (f Faults) concern(r *http.Request) bool {
	if f.Repositories == "" {
		return true
	}
	asked := parsePath(r.URL.Path)
	matched, err := path.Match(f.Repositories, asked.repository)
	return err == nil && matched && asked.repository != ""
}

// faults puts the present Faults before a handler.
type faults struct {
	after func(time.Duration) <-chan time.Time

	mu  sync.Mutex
	now Faults
}

func newFaults() *faults { return &faults{after: time.After} }

func (f *faults) set(now Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now
}

func (f *faults) get() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// concerning returns what a request meets at this moment.
func (f *faults) concerning(r *http.Request) Faults {
	if now := f.get(); now.concern(r) {
		return now
	}
	return Faults{}
}

// wrap answers through next, unless the faults want something else.
func (f *faults) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if delay := f.concerning(r).Delay; delay > 0 && !f.sleep(r, delay) {
			return // the client has gone
		}
		// Asked after the delay: a request that waited while the registry
		// went down fails, as it would with a real one.
		now := f.concerning(r)
		asked := parsePath(r.URL.Path)
		switch {
		case now.Down:
			http.Error(w, "the registry is switched off", http.StatusServiceUnavailable)
		case now.RateLimited && asked.kind == "manifests" && r.Method == http.MethodGet:
			refuseForRate(w)
		case asked.kind == "blobs" && r.Method == http.MethodGet:
			next.ServeHTTP(&slowWriter{ResponseWriter: w, request: r, faults: f}, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// sleep waits; it returns false when the client leaves in the meantime.
func (f *faults) sleep(r *http.Request, d time.Duration) bool {
	select {
	case <-f.after(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// refuseForRate answers as Docker Hub does at its limit of pulls: GET requests
// for manifests count, HEAD requests do not, and neither do blobs
// (https://docs.docker.com/docker-hub/usage/pulls/). The headers and the code
// of the error are the ones clients know.
func refuseForRate(w http.ResponseWriter) {
	w.Header().Set("RateLimit-Limit", "100;w=21600")
	w.Header().Set("RateLimit-Remaining", "0;w=21600")
	w.Header().Set("Retry-After", "60")
	replyError(w, http.StatusTooManyRequests, "TOOMANYREQUESTS",
		"You have reached your pull rate limit. The limit of this registry is set by `localtenant registry set`.")
}
