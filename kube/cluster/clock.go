package cluster

import (
	"net/http"
	"sync/atomic"
	"time"
)

// littleSkew is how far two clocks may seem apart although they agree: the
// cluster tells its time in whole seconds, and an answer takes a while.
const littleSkew = 3 * time.Second

// timekeeper notes how far the cluster's clock is ahead of this host's, by the
// answers that come anyway.
type timekeeper struct {
	to    http.RoundTripper
	ahead *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (k timekeeper) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := k.to.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		k.ahead.Store(int64(skewBy(date, time.Now())))
	}
	return response, nil
}

// WrappedRoundTripper gives client-go the transport itself, whose idle
// connections it closes.
func (k timekeeper) WrappedRoundTripper() http.RoundTripper { return k.to }

// skewBy is how far a clock is ahead that tells date while another tells now.
func skewBy(date, now time.Time) time.Duration {
	if ahead := date.Sub(now); ahead.Abs() > littleSkew {
		return ahead
	}
	return 0
}

// Now is what the cluster's clock tells while this host's tells host, as far as
// its answers have told. By it alone can be judged what the cluster has stamped,
// or what another host has.
func (c *Client) Now(host time.Time) time.Time { return host.Add(time.Duration(c.ahead.Load())) }
