// Package cluster is the connection to one Kubernetes cluster: its address,
// its certificates, and requests that are tried again where that is safe.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Config says where the cluster is and who asks.
type Config struct {
	// URL is the apiserver's address.
	URL string
	// CAFile, CertFile and KeyFile are PEM files: the cluster's CA, and the
	// client certificate with its key.
	CAFile, CertFile, KeyFile string
	// TokenFile holds a bearer token in place of the client certificate, as a
	// Pod has it for its service account.
	TokenFile string
	// UserAgent names the caller in the cluster's audit log.
	UserAgent string
}

// Limits of the connection. A stage asks little, and never in a loop without
// a pause, so there is no client-side throttling to speak of: client-go's
// default of 5 requests a second would make prepare wait for itself.
const (
	requestTimeout = 15 * time.Second
	queriesASecond = 50
	queryBurst     = 100
)

// Find says where the cluster is. It is called once at first, and again
// whenever the cluster may have moved.
type Find func(context.Context) (Config, error)

// Client talks to the cluster's core API. The cluster may move while the
// Client is in use, to another port or to other certificates; see Refind.
type Client struct {
	find   Find
	scheme *runtime.Scheme
	codec  runtime.ParameterCodec

	// finding is held while the cluster is looked up, which may take a while,
	// mu only while the fields below are in use.
	finding sync.Mutex
	mu      sync.Mutex
	found   Config
	secrets credentials
	current connection
	trouble error

	outages outages
	// ahead is how far the cluster's clock is ahead of this host's.
	ahead atomic.Int64
}

// connection is a Client's way to where the cluster is at present.
type connection struct {
	rest   *rest.RESTClient
	config *rest.Config
}

// Connect finds the cluster, reads and checks the certificates and makes a
// Client. It does not ask the cluster for anything yet. The error is a
// *FindError where the cluster was not found, a *FileError where a file is the
// matter.
func Connect(ctx context.Context, find Find) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the core API: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c := &Client{find: find, scheme: scheme, codec: runtime.NewParameterCodec(scheme)}
	_, err := c.refind(ctx)
	var validity *ValidityError
	if errors.As(err, &validity) {
		// Perhaps it is not the certificate but this host's clock.
		validity.Skew = clockSkew(ctx, validity.config, time.Now)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Fixed finds a cluster that does not move.
func Fixed(c Config) Find {
	return func(context.Context) (Config, error) { return c, nil }
}

// refind looks the cluster up and says whether anything has changed. On an
// error the Client stays as it was: files may be halfway through a change.
func (c *Client) refind(ctx context.Context) (bool, error) {
	c.finding.Lock()
	defer c.finding.Unlock()
	found, err := c.find(ctx)
	if err != nil {
		return false, err
	}
	return c.adopt(found)
}

// adopt reads the files of found and has the Client use it from now on.
func (c *Client) adopt(found Config) (bool, error) {
	secrets, err := readCredentials(found, time.Now())
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found == c.found && secrets == c.secrets {
		return false, nil
	}
	current, err := c.connection(found, secrets)
	if err != nil {
		return false, err
	}
	c.found, c.secrets, c.current = found, secrets, current
	return true, nil
}

// Refind looks the cluster up again if err may mean that it has moved: nobody
// listens at its port, or somebody else does. It says whether it has.
func (c *Client) Refind(ctx context.Context, err error) bool {
	if !Disconnected(err) && !Foreign(err) {
		return false
	}
	moved, trouble := c.refind(ctx)
	if trouble == nil && !moved && Foreign(err) {
		c.mu.Lock()
		found, secrets := c.found, c.secrets
		c.mu.Unlock()
		trouble = diagnose(ctx, found, secrets, time.Now)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = trouble
	return trouble == nil && moved
}

// Trouble is what the last Refind met or found out about an error like err: why
// the cluster cannot be found anew, or why it does not let the caller in. It is
// nil if that is not known.
func (c *Client) Trouble(err error) error {
	if !Disconnected(err) && !Foreign(err) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// Expiry is until when the client certificate is valid, and its file. It is
// zero where the caller has none.
func (c *Client) Expiry() (until time.Time, file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.secrets.until, c.found.CertFile
}

func (c *Client) connection(found Config, secrets credentials) (connection, error) {
	config := &rest.Config{
		Host:            found.URL,
		APIPath:         "/api",
		UserAgent:       found.UserAgent,
		QPS:             queriesASecond,
		Burst:           queryBurst,
		Proxy:           noProxy,
		WarningHandler:  rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secrets.ca), CertData: []byte(secrets.cert), KeyData: []byte(secrets.key)},
		// client-go reads the file again every minute: the kubelet replaces it
		// about once an hour.
		BearerTokenFile: found.TokenFile,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion,
			// Only the kinds that are registered above are ever decoded.
			NegotiatedSerializer: serializer.NewCodecFactory(c.scheme).WithoutConversion(),
		},
	}
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return listener{to, &c.outages} })
	config.Wrap(boundAnswers)
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return timekeeper{to, &c.ahead} })
	web, err := httpClient(config)
	if err != nil {
		return connection{}, fmt.Errorf("preparing the connection to %s with %s: %w", found.URL, found.CertFile, err)
	}
	client, err := rest.RESTClientForConfigAndClient(config, web)
	if err != nil {
		return connection{}, fmt.Errorf("preparing the connection to %s with %s: %w", found.URL, found.CertFile, err)
	}
	return connection{rest: client, config: config}, nil
}

// noProxy keeps to the direct way. The cluster is on this host, or this
// process is in the cluster. A proxy of the environment would only be in the
// way, and for names other than localhost Go would use it.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

func (c *Client) now() connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// URL is the address of the apiserver.
func (c *Client) URL() string { return c.now().config.Host }

// REST makes requests to the core API. It is asked for anew for each request,
// since the cluster may have moved.
func (c *Client) REST() *rest.RESTClient { return c.now().rest }

// Config is what a further connection needs. The certificate files are read
// again for it; if they are halfway through a change, the old ones are used.
func (c *Client) Config() *rest.Config {
	c.mu.Lock()
	found := c.found
	c.mu.Unlock()
	// The old certificates are still there, and the connection that fails with
	// them says what is wrong.
	_, _ = c.adopt(found)
	return rest.CopyConfig(c.now().config)
}

// ParameterCodec writes the options of requests.
func (c *Client) ParameterCodec() runtime.ParameterCodec { return c.codec }
