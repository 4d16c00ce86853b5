package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errLost = errors.New("not to be found")

// lost is a Client that has no network, and whose cluster nobody finds.
func lost(known bool, outage time.Duration, observer OutageObserver) *Client {
	c := &Client{find: func(context.Context) (Config, error) { return Config{}, errLost }}
	c.BearOutages(outage, observer)
	c.outages.answered.Store(known)
	return c
}

var (
	errRefused  = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	errStranger = x509.UnknownAuthorityError{}
)

// phase is what requests are answered from a time on.
type phase struct {
	from time.Duration
	err  error
}

// The budget of a request is for a cluster that is there: it counts from when
// that is back, at most as long as outages are borne.
func TestBudgetDoesNotCountAnOutage(t *testing.T) {
	t.Parallel()
	busy := apierrors.NewServiceUnavailable("starting")
	final := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")
	for name, test := range map[string]struct {
		known  bool
		budget time.Duration
		phases []phase
		want   error
		// after is when it ends, to a pause.
		after time.Duration
	}{
		"120 s":                         {true, time.Minute, []phase{{0, errRefused}, {2 * time.Minute, nil}}, nil, 2 * time.Minute},
		"120 s and a late start":        {true, time.Minute, []phase{{0, errRefused}, {2 * time.Minute, busy}, {170 * time.Second, nil}}, nil, 170 * time.Second},
		"a start that takes too long":   {true, time.Minute, []phase{{0, errRefused}, {2 * time.Minute, busy}}, busy, 3 * time.Minute},
		"longer than outages are borne": {true, time.Minute, []phase{{0, errRefused}}, errRefused, 11 * time.Minute},
		"never known":                   {false, time.Minute, []phase{{0, errRefused}}, errRefused, time.Minute},
		"it says no after all":          {true, time.Minute, []phase{{0, errRefused}, {2 * time.Minute, final}}, final, 2 * time.Minute},
		"another server for a moment":   {true, time.Minute, []phase{{0, errRefused}, {time.Minute, errStranger}, {80 * time.Second, nil}}, nil, 80 * time.Second},
		"another server for good":       {true, time.Minute, []phase{{0, errRefused}, {time.Minute, errStranger}}, errStranger, 90 * time.Second},
		"another server from the first": {false, time.Minute, []phase{{0, errStranger}}, errStranger, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := time.Now()
			err := lost(test.known, 10*time.Minute, nil).Retry(t.Context(), test.budget, func(context.Context) error {
				var now error
				for _, p := range test.phases {
					if time.Since(from) >= p.from {
						now = p.err
					}
				}
				return now
			})
			took := time.Since(from)
			if !errors.Is(err, test.want) && err != test.want { //nolint:errorlint // some are no pointers
				t.Errorf("%s: got %v, want %v", name, err, test.want)
			}
			if late := took - test.after; late.Abs() > 2*longestPause*6/5 {
				t.Errorf("%s: took %s, want about %s", name, took, test.after)
			}
		})
	}
}

// teller notes what an observer hears.
type teller struct{ said []string }

func (o *teller) ClusterAway(error) { o.said = append(o.said, "away") }
func (o *teller) ClusterBack(after time.Duration) {
	o.said = append(o.said, "back after "+after.Round(time.Second).String())
}

// An outage is told once, however many requests meet it, and not if it is short.
func TestOutagesAreToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observer := &teller{}
		c := lost(true, 10*time.Minute, observer)
		for _, outage := range []time.Duration{4 * time.Second, time.Minute} {
			from := time.Now()
			request := func(context.Context) error {
				if time.Since(from) < outage {
					return errRefused
				}
				return nil
			}
			other := make(chan error)
			go func() { other <- c.Retry(t.Context(), time.Minute, request) }()
			if err := errors.Join(c.Retry(t.Context(), time.Minute, request), <-other); err != nil {
				t.Error(err)
			}
		}
		if len(observer.said) != 2 || observer.said[0] != "away" {
			t.Errorf("said %q", observer.said)
		}
	})
}

// What is told of a request whose time is up is what it met, not that.
func TestRetryTellsWhatItMet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tries := 0
		err := Retry(ctx, time.Minute, func(ctx context.Context) error {
			if tries++; tries == 1 {
				return errRefused
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, errRefused) {
			t.Errorf("got %v", err)
		}
	})
}

// What is told of a request has none of its address in it, and is still an error
// of the network.
func TestBare(t *testing.T) {
	t.Parallel()
	lost := &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api/v1/pods", Err: errRefused}
	slow := &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api/v1/pods", Err: context.DeadlineExceeded}
	own := fmt.Errorf("reading a Pod: %w", lost)
	for _, test := range []struct {
		err  error
		want string
	}{
		{lost, "dial: connection refused"},
		{fmt.Errorf("%w - error from a previous attempt: %s", lost, slow), "dial: connection refused"},
		{slow, "no answer came in time"},
		{own, own.Error()},
	} {
		got := Bare(test.err)
		if got.Error() != test.want || !Disconnected(got) || !Transient(got) {
			t.Errorf("%v: got %v, Disconnected is %t, Transient %t", test.err, got, Disconnected(got), Transient(got))
		}
	}
	if err := errors.New("x"); Bare(err) != err || Bare(nil) != nil {
		t.Error("another error is changed")
	}
}
