package cluster

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Retry is the function of that name for requests to this cluster: before each
// further try it is looked up where the cluster is.
func (c *Client) Retry(ctx context.Context, budget time.Duration, request func(context.Context) error) error {
	return RetryIf(ctx, budget, func(err error) bool { return c.Refind(ctx, err) || Transient(err) }, request)
}

// Settling is how long "forbidden" may come from an apiserver that has just
// started: it answers before it has read its roles, and denies everything
// until then (seen for up to 3 s with Kubernetes 1.37).
const Settling = 10 * time.Second

// MaySettle says whether err is a denial that may only be that of an apiserver
// which has just started, when a request has been tried for so long. A denial
// by admission, such as a quota, is none: only authorization says what a user
// "cannot" do (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters). Nor is
// that of a caller whom the apiserver does not know.
func MaySettle(err error, tried time.Duration) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") && !anonymous(err) && tried < Settling
}

// RetryIf is Retry for the errors that again accepts, and for denials of an
// apiserver that may have just started.
func RetryIf(ctx context.Context, budget time.Duration, again func(error) bool, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	started := time.Now()
	backoff := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 1 << 30, Cap: longestPause}
	for {
		try, done := context.WithTimeout(limited, requestTimeout)
		err := request(try)
		done()
		if err == nil || ctx.Err() != nil || !again(err) && !MaySettle(err, time.Since(started)) {
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
