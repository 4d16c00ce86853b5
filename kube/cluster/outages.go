package cluster

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// noticeAfter is how long a request has been repeated before that is worth a
// word.
const noticeAfter = 5 * time.Second

// OutageObserver hears of requests that the cluster does not carry out for a
// while, once for all of them, and of the end of that.
type OutageObserver interface {
	ClusterAway(err error)
	ClusterBack(after time.Duration)
}

// outages is what a Client knows of the times when its cluster is away.
type outages struct {
	limit    time.Duration
	observer OutageObserver
	// answered is whether the cluster has ever let the caller in.
	answered atomic.Bool

	mu   sync.Mutex
	from time.Time
}

// BearOutages has requests wait for a cluster that is away, for at most limit,
// and tells an observer; nil is for nobody. It is called before the Client is
// in use.
func (c *Client) BearOutages(limit time.Duration, observer OutageObserver) {
	c.outages.limit, c.outages.observer = limit, observer
}

// known reports whether the cluster has let the caller in before.
func (c *Client) known() bool { return c.outages.answered.Load() }

// lasts notes that a request has been repeated for so long.
func (o *outages) lasts(so time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.observer == nil || so < noticeAfter || !o.from.IsZero() {
		return
	}
	o.from = time.Now().Add(-so)
	o.observer.ClusterAway(err)
}

// over notes that a request was carried out.
func (o *outages) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.from.IsZero() {
		return
	}
	after := time.Since(o.from)
	o.from = time.Time{}
	o.observer.ClusterBack(after)
}

// listener notes when the cluster lets the caller in.
type listener struct {
	to      http.RoundTripper
	outages *outages
}

// RoundTrip implements http.RoundTripper.
func (l listener) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.to.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusBadRequest {
		l.outages.answered.Store(true)
	}
	return response, err
}

// WrappedRoundTripper gives client-go the transport itself, whose idle
// connections it closes.
func (l listener) WrappedRoundTripper() http.RoundTripper { return l.to }
