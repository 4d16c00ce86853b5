package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Discovery finds a cluster by its Cluster object in a workspace of the kcp
// side, as `kubectl get clusters NAME` would find the object.
type Discovery struct {
	// Kubeconfig is the file that leads to the workspace, Context one of its
	// contexts, "" for the current one.
	Kubeconfig, Context string
	// Name is that of the Cluster object.
	Name string
	// Resource is RESOURCE.GROUP where "clusters" alone is ambiguous, else "".
	Resource string
	// UserAgent names the caller in the audit log.
	UserAgent string
	// Memory keeps what was found for the next process.
	Memory Memory
	// Environ is the environment of programs by which the kubeconfig's user
	// logs in, and Logins keep what they answer; nil keeps nothing. Waiting is
	// told what is waited for, unless it is nil.
	Environ []string
	Logins  *Logins
	Waiting func(text string)
	// Acceptable says why an address cannot be the cluster's.
	Acceptable func(url string) error
}

// Memory keeps small files from one process to the next.
type Memory interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error
}

// FindKind says why a cluster was not found.
type FindKind int

// The reasons.
const (
	// Unusable: the kubeconfig cannot be used.
	Unusable FindKind = iota + 1
	// Silent: the kcp side does not answer.
	Silent
	// Refused: it does not know the caller, or denies it the object.
	Refused
	// NoResource: no API group there serves the resource.
	NoResource
	// Ambiguous: several do.
	Ambiguous
	// NoObject: there is no object of that name.
	NoObject
	// NoURL: the object has no address yet.
	NoURL
	// BadURL: its address cannot be a cluster's.
	BadURL
	// NoLogin: the plugin of the kubeconfig's user does not log in.
	NoLogin
)

// FindError says why a cluster was not found.
type FindError struct {
	Kind FindKind
	Text string
	Err  error
}

// Error says what was looked for, where, and what came of it.
func (e *FindError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

// Unwrap is what led to it, nil if nothing did.
func (e *FindError) Unwrap() error { return e.Err }

// memo is what is remembered of a cluster. All of it is a hint.
type memo struct {
	URL      string   `json:"url"`
	Resource resource `json:"resource"`
}

// memoName is the file for what is remembered. It depends on all that a find
// depends on.
func (d Discovery) memoName() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{d.Kubeconfig, d.Context, d.Name, d.Resource}, "\x00")))
	return "cluster-" + hex.EncodeToString(sum[:8]) + ".json"
}

func (d Discovery) remembered() memo {
	var m memo
	data, err := d.Memory.ReadFile(d.memoName())
	if err != nil || json.Unmarshal(data, &m) != nil || d.Acceptable(m.URL) != nil {
		return memo{}
	}
	return m
}

// Remembered is where the cluster was when it was last looked up, "" if that
// is not known.
func (d Discovery) Remembered() string { return d.remembered().URL }

// askBudget bounds a look-up, with its repetitions where nothing else is known.
// The kcp side is on this host: what takes longer does not come. The runner
// tries prepare three times.
const askBudget = 5 * time.Second

// Find asks the kcp side where the cluster is. If that does not answer, or the
// plugin that logs in there, it is where it was last; fallen is then why it was
// not asked. The error is a *FindError, or that of ctx.
func (d Discovery) Find(ctx context.Context) (url string, fallen, err error) {
	known := d.remembered()
	server, found, err := d.lookUp(ctx, known, false)
	if apierrors.IsUnauthorized(err) && server.loggedIn {
		// What the plugin has answered before may have been withdrawn.
		server, found, err = d.lookUp(ctx, known, true)
	}
	var unfound *FindError
	switch {
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case server == nil && known.URL != "" && errors.As(err, &unfound) && unfound.Kind == NoLogin:
		return known.URL, err, nil
	case server == nil:
		return "", nil, err
	case known.URL != "" && silent(err):
		return known.URL, server.explain(err), nil
	case err != nil:
		return "", nil, server.explain(err)
	}
	// A memory that cannot be written costs the next process a look-up.
	if data, err := json.Marshal(found); err == nil {
		_ = d.Memory.WriteFile(d.memoName(), data)
	}
	return found.URL, nil, nil
}

// lookUp asks the kcp side once, or again for as long as nothing else is known.
// Without a workspace the error is a *FindError, or that of ctx.
func (d Discovery) lookUp(ctx context.Context, known memo, fresh bool) (*workspace, memo, error) {
	server, err := d.workspace(ctx, fresh)
	if err != nil {
		return nil, memo{}, err
	}
	var found memo
	tries := 0
	// The second try is for a connection that an earlier look-up of this
	// process has left, and that is dead by now. A login that is not taken is
	// tried again unless a plugin can bring another.
	again := func(err error) bool {
		return unauthorized(err) && !server.loggedIn || silent(err) && (known.URL == "" || tries < 2)
	}
	err = RetryIf(ctx, askBudget, again, func(ctx context.Context) (err error) {
		tries++
		found, err = server.find(ctx, known.Resource)
		return err
	})
	return server, found, err
}

// silent says whether the kcp side has not answered, or that it cannot at
// present. A word of its own about the object is final.
func silent(err error) bool {
	var final *FindError
	return !errors.As(err, &final) && Transient(err)
}

// workspace is the apiserver of the kcp side.
type workspace struct {
	discovery Discovery
	config    *rest.Config
	namespace string
	client    *rest.RESTClient
	// loggedIn is whether a plugin has logged in.
	loggedIn bool
}

// find reads the object. A resource that is remembered saves the discovery.
func (w *workspace) find(ctx context.Context, known resource) (memo, error) {
	if known.matches(w.discovery.Resource) {
		url, err := w.read(ctx, known)
		if !apierrors.IsNotFound(err) {
			return memo{URL: url, Resource: known}, err
		}
		// The object is not there, or its API has moved to another version.
	}
	found, err := w.resource(ctx)
	if err != nil {
		return memo{}, err
	}
	url, err := w.read(ctx, found)
	return memo{URL: url, Resource: found}, err
}

// get reads a path. The library decodes a Status for Error alone.
func (w *workspace) get(ctx context.Context, path ...string) ([]byte, error) {
	return w.getAs(ctx, "application/json", path...)
}

func (w *workspace) getAs(ctx context.Context, accept string, path ...string) ([]byte, error) {
	result := w.client.Get().AbsPath(path...).SetHeader("Accept", accept).MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// object is what is read of the Cluster object.
type object struct {
	Status struct {
		URL   string `json:"url"`
		Phase string `json:"phase"`
	} `json:"status"`
}

// read reads the address from the object.
func (w *workspace) read(ctx context.Context, r resource) (string, error) {
	path := r.path(w.namespace, w.discovery.Name)
	data, err := w.get(ctx, path...)
	what := fmt.Sprintf("%s %q", r.name(), w.discovery.Name)
	switch {
	case apierrors.IsNotFound(err):
		return "", &FindError{Kind: NoObject, Text: fmt.Sprintf("there is no %s at %s", what, w.config.Host), Err: err}
	case apierrors.IsForbidden(err):
		return "", &FindError{Kind: Refused, Text: fmt.Sprintf("%s may not be read at %s", what, w.config.Host), Err: err}
	case err != nil:
		return "", err
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return "", &FindError{Kind: NoURL, Text: fmt.Sprintf("%s at %s cannot be understood", what, w.config.Host), Err: err}
	}
	if o.Status.URL == "" {
		phase := ""
		if o.Status.Phase != "" {
			phase = fmt.Sprintf(" (its phase is %q)", o.Status.Phase)
		}
		return "", &FindError{Kind: NoURL, Text: fmt.Sprintf("%s at %s has no .status.url%s: no apiserver runs for it yet", what, w.config.Host, phase)}
	}
	if err := w.discovery.Acceptable(o.Status.URL); err != nil {
		return "", &FindError{Kind: BadURL, Text: fmt.Sprintf("%s at %s", what, w.config.Host), Err: err}
	}
	return strings.TrimSuffix(o.Status.URL, "/"), nil
}

// explain makes a *FindError of what a request ended with.
func (w *workspace) explain(err error) error {
	var known *FindError
	where := fmt.Sprintf("the kcp side at %s (%s)", w.config.Host, w.discovery.Kubeconfig)
	switch {
	case errors.As(err, &known):
		return err
	case redirected(err):
		return &FindError{Kind: Unusable, Text: where, Err: err}
	case Denied(err):
		return &FindError{Kind: Refused, Text: where + " does not let its user in", Err: err}
	case Transient(err):
		return &FindError{Kind: Silent, Text: where + " does not answer", Err: err}
	}
	return &FindError{Kind: Unusable, Text: where, Err: err}
}
