package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// denial is an apiserver's answer to somebody whom it knows.
func denial(text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(text))
}

const noRight = `User "driver" cannot create resource "pods/exec" in API group "" in the namespace "ci"`

// How long denials are borne depends on what the apiserver says of itself, not
// on when the trouble began.
func TestAuthWarmup(t *testing.T) {
	t.Parallel()
	missing, refused, starting := denial(noRight), error(syscall.ECONNREFUSED), apierrors.NewServiceUnavailable("starting")
	kubelet := denial("Forbidden (user=kube-apiserver, verb=create, resource=nodes, subresource(s)=[proxy])")
	type try struct {
		at   time.Duration
		err  error
		want bool
	}
	// every is a try a second.
	every := func(err error, from, to time.Duration, want bool) (all []try) {
		for at := from; at <= to; at += time.Second {
			all = append(all, try{at, err, want})
		}
		return all
	}
	for name, test := range map[string]struct {
		// unready is how many times the apiserver says that it is not ready, below
		// 0 for ever.
		unready int
		tries   []try
	}{
		"another error":                    {-1, []try{{0, refused, false}, {time.Second, denial("exceeded quota: team"), false}}},
		"nobody":                           {-1, []try{{0, denial(`User "system:anonymous" cannot get resource "pods"`), false}}},
		"ready, and no right":              {0, append(every(missing, 0, time.Second, true), try{2 * time.Second, missing, false})},
		"roles are read late":              {90, every(missing, 0, 91*time.Second, true)},
		"roles are read, and no right":     {30, append(every(missing, 0, 31*time.Second, true), try{32 * time.Second, missing, false})},
		"never ready":                      {-1, append(every(missing, 0, 119*time.Second, true), try{2 * time.Minute, missing, false})},
		"after a long outage":              {-1, slices.Concat(every(refused, 0, 5*time.Minute, false), every(missing, 301*time.Second, 400*time.Second, true))},
		"the apiserver ends again":         {0, []try{{0, missing, true}, {time.Second, refused, false}, {10 * time.Second, missing, true}, {11 * time.Second, missing, true}, {12 * time.Second, missing, false}}},
		"between other answers":            {-1, []try{{0, missing, true}, {100 * time.Second, starting, false}, {110 * time.Second, missing, true}, {220 * time.Second, missing, true}, {230 * time.Second, missing, false}}},
		"a node remembers what it heard":   {0, append(every(kubelet, 0, 119*time.Second, true), try{2 * time.Minute, kubelet, false})},
		"no word on whether it is ready":   {-1, []try{{0, missing, true}, {119 * time.Second, missing, true}, {121 * time.Second, missing, false}}},
		"first of two apiservers is ready": {0, []try{{0, missing, true}, {1999 * time.Millisecond, missing, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := faultserver.Start(t)
			server.Fail(test.unready, "get", "readyz", faultserver.Answer(http.StatusInternalServerError, "[-]informer-sync failed"))
			now := time.Unix(1e9, 0)
			var at time.Duration
			w := connect(t, server, server.Credentials(t)).AuthWarmup(func() time.Time { return now.Add(at) })
			for _, try := range test.tries {
				if at = try.at; w.MayPass(t.Context(), try.err) != try.want {
					t.Fatalf("after %s %v may pass: %t", at, try.err, !try.want)
				}
			}
		})
	}
}

// A Client bears denials, and ends with its time at the latest.
func TestClientRetriesDenials(t *testing.T) {
	t.Parallel()
	server := faultserver.Start(t)
	c := connect(t, server, server.Credentials(t))
	no := faultserver.AnswerStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "pods is forbidden: "+noRight)
	server.Fail(3, "list", "pods", no)
	if err := c.Retry(t.Context(), time.Minute, func(ctx context.Context) error { return list(ctx, c) }); err != nil {
		t.Error(err)
	}
	server.Fail(-1, "list", "pods", no)
	if err := c.Retry(t.Context(), 200*time.Millisecond, func(ctx context.Context) error { return list(ctx, c) }); !cluster.Denied(err) {
		t.Error(err)
	}
}
