package registry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
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

	f.setDelay(7 * time.Second)
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

	f.setDelay(0)
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
	f.setDelay(time.Hour)
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
		f.setDown(true)
		fired := make(chan time.Time)
		close(fired)
		return fired
	}}
	f.setDelay(time.Second)
	answer := httptest.NewRecorder()
	f.wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request reached the content")
	})).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v2/", nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", answer.Code)
	}
}
