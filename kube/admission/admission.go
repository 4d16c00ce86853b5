// Package admission reads why a cluster does not take an object from a caller
// who may make it: its admission has refused the object, or could not judge it.
package admission

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kind sorts refusals by what can be done about them.
type Kind int

const (
	// QuotaFull is a quota that others use up at present.
	QuotaFull Kind = iota
	// QuotaUnready is a quota that the cluster has not counted yet.
	QuotaUnready
	// WebhookDown is a webhook that did not answer.
	WebhookDown
	// QuotaTooSmall is a quota that would refuse the object even if nothing else
	// were there.
	QuotaTooSmall
	// NamespaceEnding is a namespace that is being deleted.
	NamespaceEnding
)

// Passes says whether the same object may be taken a little later.
func (k Kind) Passes() bool { return k <= WebhookDown }

// Refusal is why an object was not taken. As an error it hides the cluster's
// answer from those who would repeat the request in silence: see Stop.
type Refusal struct {
	Kind Kind
	// Quotas are the quotas that refuse, with what they are about. QuotaUnready
	// has their names alone.
	Quotas []Quota
	// Webhook is the name of the webhook that did not answer, Trouble why.
	Webhook, Trouble string
	err              error
}

// Error is the cluster's answer.
func (r *Refusal) Error() string { return r.err.Error() }

// Answer is the cluster's answer.
func (r *Refusal) Answer() error { return r.err }

// Stop ends the repetition of a request whose answer is that a webhook is down:
// whoever asked wants to say so before asking again.
func Stop(err error) error {
	if r := Of(err); r != nil && r.Kind == WebhookDown {
		return r
	}
	return err
}

// Of reads an answer of the cluster; nil is one that is none of the kinds.
func Of(err error) *Refusal {
	var known *Refusal
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &known):
		return known
	case err == nil, !errors.As(err, &status):
		return nil
	}
	message := status.Status().Message
	switch {
	case apierrors.IsForbidden(err):
		return forbidden(message, err)
	case apierrors.IsInternalError(err):
		if m := calling.FindStringSubmatch(message); m != nil {
			return &Refusal{Kind: WebhookDown, Webhook: m[1], Trouble: m[2], err: err}
		}
	}
	return nil
}

// The words of the apiserver (in k8s.io/apiserver): of webhooks (pkg/util/webhook,
// ErrCallingWebhook), of namespaces (pkg/admission/plugin/namespace/lifecycle) and
// of quotas (pkg/admission/plugin/resourcequota, checkRequest).
var (
	calling = regexp.MustCompile(`(?s)failed calling webhook "([^"]*)": (.*)`)
	ending  = regexp.MustCompile(`because it is being terminated$`)
	unready = regexp.MustCompile(`status unknown for quota: ([^,\s]+), resources: `)
)

func forbidden(message string, err error) *Refusal {
	if ending.MatchString(message) {
		return &Refusal{Kind: NamespaceEnding, err: err}
	}
	if quotas := quotasOf(message); len(quotas) > 0 {
		kind := QuotaFull
		for _, q := range quotas {
			if len(q.Beyond()) > 0 {
				kind = QuotaTooSmall
			}
		}
		return &Refusal{Kind: kind, Quotas: quotas, err: err}
	}
	if all := unready.FindAllStringSubmatch(message, -1); all != nil {
		r := &Refusal{Kind: QuotaUnready, err: err}
		for _, m := range all {
			r.Quotas = append(r.Quotas, Quota{Name: m[1]})
		}
		return r
	}
	return nil
}
