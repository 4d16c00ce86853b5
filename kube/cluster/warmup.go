package cluster

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Limits of an AuthWarmup.
const (
	// warmupLimit is how long denials may come in a row. It is for clusters
	// that do not tell when they are ready, and for nodes, which remember an
	// answer of the apiserver for up to 30 s (the kubelet's
	// authorization.webhook.cacheUnauthorizedTTL).
	warmupLimit = 2 * time.Minute
	// warmupConfirm is how long after the apiserver has called itself ready a
	// denial still counts as one of before: it may have been on its way, or
	// another apiserver may have given it.
	warmupConfirm = 2 * time.Second
	// readyTimeout bounds the question whether the apiserver is ready.
	readyTimeout = 5 * time.Second
)

// AuthWarmup tells the denials of an apiserver that has just started from those
// that stay. It answers before it has read its roles, and denies everything
// until then: three seconds as a rule, much longer on a busy machine. What ends
// that is not a length of time but its own word that it is ready, which it gives
// once its caches are filled, those of the roles among them ("informer-sync" of
// /readyz; k8s.io/apiserver/pkg/server/config.go).
//
// Each request that is tried again has an AuthWarmup of its own.
type AuthWarmup struct {
	client *Client
	now    func() time.Time
	// denied is since when there have been denials and nothing else, ready since
	// when the apiserver has called itself ready meanwhile.
	denied, ready time.Time
}

// AuthWarmup is for one request and its repetitions, by a clock.
func (c *Client) AuthWarmup(now func() time.Time) *AuthWarmup {
	return &AuthWarmup{client: c, now: now}
}

// MayPass reports whether err is a denial that may pass. It is to be told of
// every failed try: after any other failure the count begins anew, since the
// apiserver may have started once more.
func (w *AuthWarmup) MayPass(ctx context.Context, err error) bool {
	if !unauthorized(err) {
		w.denied, w.ready = time.Time{}, time.Time{}
		return false
	}
	now := w.now()
	if w.denied.IsZero() {
		w.denied = now
	}
	switch {
	case now.Sub(w.denied) >= warmupLimit:
		return false
	case byNode(err):
		return true
	case w.ready.IsZero():
		if w.client.ready(ctx) {
			w.ready = w.now()
		}
		return true
	}
	return now.Sub(w.ready) < warmupConfirm
}

// unauthorized reports whether authorization has denied a request to a caller
// that is known. A denial by admission, such as a quota, is none: only
// authorization says what a user "cannot" do
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters).
func unauthorized(err error) bool {
	return apierrors.IsForbidden(err) && !anonymous(err) && (strings.Contains(err.Error(), " cannot ") || byNode(err))
}

// byNode reports whether a node has denied a request that the apiserver has
// passed on to it. It asks the apiserver about the apiserver's own rights, which
// are a role like any other in some clusters
// (kubernetes/pkg/kubelet/server/server.go, InstallAuthFilter).
func byNode(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "Forbidden (user=")
}

// ready reports whether the apiserver calls itself ready. Every user may ask
// (the ClusterRole system:public-info-viewer).
func (c *Client) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c.REST().Get().AbsPath("readyz").MaxRetries(0).Do(ctx).Error() == nil
}
