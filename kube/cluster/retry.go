package cluster

import (
	"context"
	"errors"
	"net/url"
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
// then it returns the last error. Only what may be done twice belongs in it.
// Each try gets a context of its own that ends after a fixed time, so that a
// connection without an answer does not use up the budget.
func Retry(ctx context.Context, budget time.Duration, request func(context.Context) error) error {
	return RetryIf(ctx, budget, Transient, request)
}

// RetryIf is Retry for the errors that again accepts.
func RetryIf(ctx context.Context, budget time.Duration, again func(error) bool, request func(context.Context) error) error {
	return retry(ctx, budget, func(_ context.Context, err error) opinion { return opinion{again: again(err)} }, request)
}

// Retry is the function of that name for requests to this cluster; see RetryIf.
func (c *Client) Retry(ctx context.Context, budget time.Duration, request func(context.Context) error) error {
	return c.RetryIf(ctx, budget, Transient, request)
}

// RetryIf is the function of that name for requests to this cluster. Before each
// further try it is looked up where the cluster is. A cluster that has answered
// before and is away, or has just come back, is waited for as long as
// BearOutages says: budget counts from then on.
func (c *Client) RetryIf(ctx context.Context, budget time.Duration, again func(error) bool, request func(context.Context) error) error {
	t := &trial{client: c, warmup: c.AuthWarmup(time.Now), again: again, began: time.Now()}
	err := retry(ctx, budget, t.judge, request)
	if err == nil {
		c.outages.over()
	}
	return err
}

// opinion is what to do after a failed try.
type opinion struct {
	// again is whether another try may succeed, and free whether what has passed
	// so far does not count.
	again, free bool
}

func retry(ctx context.Context, budget time.Duration, judge func(context.Context, error) opinion, request func(context.Context) error) error {
	deadline := time.Now().Add(budget)
	backoff := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 1 << 30, Cap: longestPause}
	var told error
	for {
		try, done := context.WithDeadline(ctx, earlier(deadline, time.Now().Add(requestTimeout)))
		err := Bare(request(try))
		if told == nil || try.Err() == nil {
			told = err // that the time was up says less than what came before
		}
		done()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return told
		}
		o := judge(ctx, err)
		if !o.again {
			return err
		}
		if o.free {
			deadline = time.Now().Add(budget)
		}
		if !sleep(ctx, earlier(deadline, time.Now().Add(backoff.Step()))) || !time.Now().Before(deadline) {
			return told
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sleep waits until then and reports whether ctx has not ended before.
func sleep(ctx context.Context, then time.Time) bool {
	timer := time.NewTimer(time.Until(then))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Bare is an error of a request without the request's address, which is long and
// says nothing to the reader of a job log. Retry does this by itself.
func Bare(err error) error {
	var wrapped *url.Error
	// client-go puts the error of an earlier attempt of its own behind it
	// (rest/with_retry.go).
	if errors.As(err, &wrapped) && strings.HasPrefix(err.Error(), wrapped.Error()) {
		return &bareError{wrapped.Err, wrapped.Timeout()}
	}
	return err
}

// bareError is a net.Error, as the one that it is made of.
type bareError struct {
	error
	timeout bool
}

// Error does not speak of deadlines of the driver's own.
func (e *bareError) Error() string {
	if errors.Is(e.error, context.DeadlineExceeded) {
		return "no answer came in time"
	}
	return e.error.Error()
}

func (e *bareError) Unwrap() error { return e.error }
func (e *bareError) Timeout() bool { return e.timeout }

// Temporary belongs to net.Error.
func (e *bareError) Temporary() bool { return true }

// strangerLimit is how long a server that is not the cluster, or does not know
// the caller, is borne where the cluster has answered before: its certificates
// are being replaced, one file after the other.
const strangerLimit = 30 * time.Second

// trial is one request to a cluster, over its repetitions.
type trial struct {
	client *Client
	warmup *AuthWarmup
	again  func(error) bool
	began  time.Time
	// away is since when the cluster has been away or coming back, strange since
	// when another has answered; zero while it is not so.
	away, strange time.Time
}

// judge implements the policy of Client.RetryIf.
func (t *trial) judge(ctx context.Context, err error) opinion {
	c, now := t.client, time.Now()
	moved := c.Refind(ctx, err)
	warming := t.warmup.MayPass(ctx, err)
	since(&t.strange, Foreign(err) && c.known(), now)
	strange := !t.strange.IsZero() && now.Sub(t.strange) < strangerLimit
	since(&t.away, (nobody(err) || warming || strange) && c.known(), now)
	o := opinion{
		again: moved || warming || strange || t.again(err),
		free:  !t.away.IsZero() && now.Sub(t.away) < c.outages.limit,
	}
	if o.again && (o.free || answered(err)) {
		c.outages.lasts(now.Sub(t.began), err)
	}
	return o
}

// since notes when something began that is so now.
func since(start *time.Time, so bool, now time.Time) {
	switch {
	case !so:
		*start = time.Time{}
	case start.IsZero():
		*start = now
	}
}

// answered reports whether err is the cluster's answer to a request, or that it
// gave none. What goes wrong with a command in a Pod is not its own.
func answered(err error) bool {
	var status apierrors.APIStatus
	var network *bareError
	return errors.As(err, &status) || errors.As(err, &network)
}
