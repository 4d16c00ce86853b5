package registry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// TestDelay puts its own clock in place: the request is answered when the
// clock fires and not before.
func TestDelay(t *testing.T) {
	asked, fire := make(chan time.Duration, 1), make(chan time.Time)
	f := &faults{after: func(d time.Duration) <-chan time.Time {
		asked <- d
		return fire
	}}
	reached := make(chan struct{}, 1)
	server := httptest.NewServer(f.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
	})))
	defer server.Close()

	f.set(Faults{Delay: 7 * time.Second})
	answered := make(chan error, 1)
	get := func() {
		resp, err := http.Get(server.URL)
		if err == nil {
			err = resp.Body.Close()
		}
		answered <- err
	}
	go get()
	if d := <-asked; d != 7*time.Second {
		t.Errorf("waits for %v, want 7s", d)
	}
	select {
	case <-reached:
		t.Fatal("answered before the delay was over")
	default:
	}
	fire <- time.Time{}
	<-reached
	if err := <-answered; err != nil {
		t.Error(err)
	}

	f.set(Faults{})
	get()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if len(asked) != 0 {
		t.Error("still waits after the delay was taken back")
	}
}

func TestDelayEndsWithItsClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &faults{after: func(time.Duration) <-chan time.Time {
		cancel()
		return nil // never
	}}
	server := httptest.NewServer(f.wrap(http.NotFoundHandler()))
	defer server.Close() // waits for the handler: hangs if the delay does not end
	f.set(Faults{Delay: time.Hour})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("request = %v, want cancelled", err)
	}
}

// TestDownDuringDelay lets the registry go down while a request waits.
func TestDownDuringDelay(t *testing.T) {
	var f *faults
	f = &faults{after: func(time.Duration) <-chan time.Time {
		f.set(Faults{Down: true})
		fired := make(chan time.Time)
		close(fired)
		return fired
	}}
	f.set(Faults{Delay: time.Second})
	answer := httptest.NewRecorder()
	f.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request reached the content")
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v2/", nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", answer.Code)
	}
}

// TestSlow has a clock that remembers: 25 bytes at 100 a second are three parts
// with a pause after each, and what is set meanwhile counts at once.
func TestSlow(t *testing.T) {
	var pauses []time.Duration
	var f *faults
	f = &faults{after: func(d time.Duration) <-chan time.Time {
		if pauses = append(pauses, d); len(pauses) == 4 {
			f.set(Faults{}) // mended in the middle
		}
		fired := make(chan time.Time)
		close(fired)
		return fired
	}}
	blob := f.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.Write(make([]byte, 25)); n != 25 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}))
	get := func(path string) int {
		answer := httptest.NewRecorder()
		blob.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Body.Len()
	}
	f.set(Faults{BytesPerSecond: 100})
	if n := get("/v2/a/b/blobs/sha256:1"); n != 25 {
		t.Errorf("%d bytes, want 25", n)
	}
	const part = 100 * time.Millisecond
	if want := []time.Duration{part, part, part / 2}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	if get("/v2/a/b/manifests/1"); len(pauses) != 3 {
		t.Error("a manifest was slow")
	}
	if n := get("/v2/a/b/blobs/sha256:1"); n != 25 || len(pauses) != 4 {
		t.Errorf("mended in the middle: %d bytes, %d pauses, want 25 and 1 more", n, len(pauses))
	}
}

func TestSlowEndsWithItsClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &faults{after: func(time.Duration) <-chan time.Time {
		cancel()
		return nil // never
	}}
	f.set(Faults{BytesPerSecond: 1})
	request := httptest.NewRequest(http.MethodGet, "/v2/a/blobs/sha256:1", nil).WithContext(ctx)
	f.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.Write([]byte("ab")); n != 1 || !errors.Is(err, context.Canceled) {
			t.Errorf("wrote %d, %v, want 1 and the client's end", n, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), request)
}

func TestParsePath(t *testing.T) {
	for path, want := range map[string]request{
		"/v2/":                      {},
		"/token":                    {},
		"/v2/a/manifests/1":         {"a", "manifests"},
		"/v2/a/b/c/blobs/sha256:1":  {"a/b/c", "blobs"},
		"/v2/a/blobs/uploads/1":     {"a", "blobs"},
		"/v2/a/blobs/b/manifests/1": {"a/blobs/b", "manifests"},
		"/v2/a/tags/list":           {"a", "tags"},
		"/v2/manifests/1":           {},
		"/other/a/manifests/1":      {},
	} {
		if got := parsePath(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}
