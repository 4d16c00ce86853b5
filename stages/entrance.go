package stages

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
	"github.com/socialweb-computer/tenant-executor/kube/admission"
)

// entrance asks the cluster to take what prepare makes until it is let in: while a
// quota is used up, which is a wait like that for a node, and while a webhook is
// down.
type entrance struct {
	driver    *Driver
	namespace string
	news      news
	// first is when something was refused first, and since when it is for the
	// same reason.
	first, since time.Time
	kind         admission.Kind
	// waited is how long it took to be let in.
	waited time.Duration
}

func (d *Driver) entrance(namespace string) *entrance {
	return &entrance{driver: d, namespace: namespace, news: news{log: d.log, clock: d.clock}}
}

// Pauses between two tries. Nothing tells when a quota has room again but a right
// to watch quotas.
const (
	firstTry = time.Second
	lastTry  = 5 * time.Second
)

// pass calls try until the cluster has taken what it makes, or does not for a
// reason that does not pass.
func (e *entrance) pass(ctx context.Context, try func() error) error {
	clock := e.driver.clock
	for pause := firstTry; ; pause = min(2*pause, lastTry) {
		err := try()
		r := admission.Of(err)
		if !e.first.IsZero() {
			e.waited = clock.Now().Sub(e.first)
		}
		if r == nil || !r.Kind.Passes() {
			return err
		}
		e.meet(r)
		left := e.left(r)
		if left <= 0 {
			return e.over(r)
		}
		e.tell(r)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-clock.After(min(pause, left)):
		}
	}
}

// meet notes since when there is such a refusal.
func (e *entrance) meet(r *admission.Refusal) {
	now := e.driver.clock.Now()
	if e.first.IsZero() {
		e.first = now
	}
	if e.since.IsZero() || e.kind != r.Kind {
		e.since, e.kind = now, r.Kind
	}
}

// tell says what is waited for.
func (e *entrance) tell(r *admission.Refusal) {
	lasted := e.driver.clock.Now().Sub(e.since)
	switch r.Kind {
	case admission.QuotaFull:
		for _, q := range r.Quotas {
			e.news.say(lasted, "Waiting for quota %s of namespace %s: %s", q.Name, e.namespace, q)
		}
	case admission.QuotaUnready:
		e.news.say(lasted, "Waiting for the cluster to count quota %s of namespace %s", quotaNames(r), e.namespace)
	case admission.WebhookDown:
		e.news.say(lasted, "Waiting for admission webhook %s of the cluster: %s", r.Webhook, oneLine(r.Trouble))
	}
}

// left is how long such a refusal is still borne.
func (e *entrance) left(r *admission.Refusal) time.Duration {
	now := e.driver.clock.Now()
	if r.Kind == admission.WebhookDown {
		return requestBudget - now.Sub(e.since)
	}
	return e.driver.settings.Wait.Node.Value() - now.Sub(e.first)
}

// over is the failure once the time for such a refusal has passed.
func (e *entrance) over(r *admission.Refusal) error {
	now := e.driver.clock.Now()
	if r.Kind == admission.WebhookDown {
		return failure.Wrap(failure.WebhookDown, r.Answer(), "admission webhook %s has not answered for %s", r.Webhook, joblog.Duration(now.Sub(e.since)))
	}
	return failure.New(failure.QuotaFull, "no room for the job in namespace %s after %s: quota %s%s", e.namespace, joblog.Duration(now.Sub(e.first)), quotaNames(r), because(r.Quotas[0].String()))
}

// rest is how long the Pod may still wait for a node.
func (e *entrance) rest() time.Duration {
	return max(e.driver.settings.Wait.Node.Value()-e.waited, time.Second)
}

func quotaNames(r *admission.Refusal) string {
	var names []string
	for _, q := range r.Quotas {
		names = append(names, q.Name)
	}
	return strings.Join(names, ", ")
}

// refused is the failure of something that the cluster will not take: nil where it
// is none of admission's.
func (d *Driver) refused(err error, namespace string) error {
	var own *failure.Failure
	r := admission.Of(err)
	switch {
	case errors.As(err, &own):
		return own
	case r == nil:
		return nil
	case r.Kind == admission.NamespaceEnding && !d.choseNamespace():
		return failure.New(failure.Settings, "namespace %s is being deleted, so that nothing can be made in it", namespace)
	case r.Kind == admission.QuotaTooSmall:
		var all []string
		for _, q := range r.Quotas {
			for _, u := range q.Beyond() {
				all = append(all, u.Requested.String()+" "+u.Resource+" are asked for, and quota "+q.Name+" has "+u.Limit.String())
			}
		}
		return failure.New(failure.QuotaTooSmall, "the job never fits into namespace %s: %s", namespace, strings.Join(all, "; "))
	}
	return nil
}
