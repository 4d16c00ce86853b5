package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// tries is how often a request is made; a busy server (503) gets more time.
const (
	tries     = 3
	busyTries = 6
)

// retryableError is a failure that may be gone the next time.
type retryableError struct {
	err  error
	busy bool // the server asked for patience with a 503
}

func (e *retryableError) Error() string { return e.err.Error() }

func (e *retryableError) Unwrap() error { return e.err }

// retry calls try until it succeeds, fails for good or has been called often
// enough. Attempts are counted from 0.
func retry(ctx context.Context, h host, try func(attempt int) error) error {
	pause := time.Second
	for attempt := 0; ; attempt++ {
		err := try(attempt)
		var again *retryableError
		if !errors.As(err, &again) {
			return err
		}
		limit := tries
		if again.busy {
			limit = busyTries
		}
		if attempt+1 >= limit {
			return fmt.Errorf("given up after %d tries: %w", attempt+1, err)
		}
		h.console.warn("%v; next try in %s", err, pause)
		if err := h.sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// connectionError is what an HTTP client returned instead of an answer. The end
// of the job is the one reason not to try again.
func connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &retryableError{err: err}
}

// statusError is an answer other than the one hoped for.
func statusError(what string, resp *http.Response) error {
	err := fmt.Errorf("%s: the server answered %s", what, resp.Status)
	if resp.StatusCode >= 500 {
		return &retryableError{err: err, busy: resp.StatusCode == http.StatusServiceUnavailable}
	}
	return err
}
