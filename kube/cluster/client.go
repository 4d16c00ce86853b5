// Package cluster is the connection to one Kubernetes cluster: its address,
// its certificates, and requests that are tried again where that is safe.
package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
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

// Client talks to the cluster's core API. The cluster may move while the
// Client is in use, to another port or to other certificates; see Refind.
type Client struct {
	find   func() (Config, error)
	scheme *runtime.Scheme
	codec  runtime.ParameterCodec

	mu      sync.Mutex
	found   Config
	secrets credentials
	current connection
}

// connection is a Client's way to where the cluster is at present.
type connection struct {
	rest   *rest.RESTClient
	config *rest.Config
}

// Connect finds the cluster, reads the certificates and makes a Client. It
// sends nothing yet. Find is called again whenever the cluster may have moved.
// The error is a *FileError where a file is the matter.
func Connect(find func() (Config, error)) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the core API: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c := &Client{find: find, scheme: scheme, codec: runtime.NewParameterCodec(scheme)}
	if _, err := c.refind(); err != nil {
		return nil, err
	}
	return c, nil
}

// Fixed finds a cluster that does not move.
func Fixed(c Config) func() (Config, error) {
	return func() (Config, error) { return c, nil }
}

// refind looks the cluster up and says whether anything has changed. On an
// error the Client stays as it was: files may be halfway through a change.
func (c *Client) refind() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, err := c.find()
	if err != nil {
		return false, err
	}
	secrets, err := readCredentials(found)
	if err != nil {
		return false, err
	}
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
func (c *Client) Refind(err error) bool {
	if !Disconnected(err) && !Foreign(err) {
		return false
	}
	moved, err := c.refind()
	return err == nil && moved
}

func (c *Client) connection(found Config, secrets credentials) (connection, error) {
	config := &rest.Config{
		Host:      found.URL,
		APIPath:   "/api",
		UserAgent: found.UserAgent,
		QPS:       queriesASecond,
		Burst:     queryBurst,
		// The cluster is on this host. A proxy of the environment would only
		// be in the way, and for names other than localhost Go would use it.
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
		WarningHandler:  rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secrets.ca), CertData: []byte(secrets.cert), KeyData: []byte(secrets.key)},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion,
			// Only the kinds that are registered above are ever decoded.
			NegotiatedSerializer: serializer.NewCodecFactory(c.scheme).WithoutConversion(),
		},
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return connection{}, fmt.Errorf("preparing the connection to %s with %s: %w", found.URL, found.CertFile, err)
	}
	return connection{rest: client, config: config}, nil
}

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

// Config is what a further connection needs.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.now().config) }

// ParameterCodec writes the options of requests.
func (c *Client) ParameterCodec() runtime.ParameterCodec { return c.codec }

// FileError is a certificate file that cannot be used.
type FileError struct {
	Path string
	Err  error
}

// Error names the file and what is the matter with it.
func (e *FileError) Error() string { return fmt.Sprintf("reading %s: %v", e.Path, e.Err) }

// Unwrap is the error of the file system.
func (e *FileError) Unwrap() error { return e.Err }

// credentials are what the certificate files hold.
type credentials struct{ ca, cert, key string }

// readCredentials reads the files and finds out now what client-go would only
// write to its log when the first connection is made.
func readCredentials(c Config) (credentials, error) {
	var found credentials
	for _, file := range []struct {
		path string
		text *string
	}{{c.CAFile, &found.ca}, {c.CertFile, &found.cert}, {c.KeyFile, &found.key}} {
		b, err := os.ReadFile(file.path)
		if err != nil {
			return credentials{}, &FileError{Path: file.path, Err: err}
		}
		*file.text = string(b)
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(found.ca)) {
		return credentials{}, &FileError{Path: c.CAFile, Err: errors.New("it holds no certificate (PEM)")}
	}
	if _, err := tls.X509KeyPair([]byte(found.cert), []byte(found.key)); err != nil {
		return credentials{}, &FileError{Path: c.CertFile, Err: fmt.Errorf("with the key %s: %w", c.KeyFile, err)}
	}
	return found, nil
}
