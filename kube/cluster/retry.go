package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Pauses between two tries of a request.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// Retry calls request until it succeeds, fails for good, or budget has passed;
// then it gives the last error. Only what may be done twice belongs in it.
// Each try gets a context of its own that ends after a fixed time, so that a
// connection without an answer does not use up the budget.
func Retry(ctx context.Context, budget time.Duration, request func(context.Context) error) error {
	return RetryIf(ctx, budget, Transient, request)
}

// RetryIf is Retry for the errors that again accepts.
func RetryIf(ctx context.Context, budget time.Duration, again func(error) bool, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	backoff := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 1 << 30, Cap: longestPause}
	for {
		try, done := context.WithTimeout(limited, requestTimeout)
		err := request(try)
		done()
		if err == nil || ctx.Err() != nil || !again(err) {
			return err
		}
		pause := time.NewTimer(backoff.Step())
		select {
		case <-limited.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}
