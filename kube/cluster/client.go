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

// Client talks to the cluster's core API.
type Client struct {
	rest   *rest.RESTClient
	config *rest.Config
	scheme *runtime.Scheme
}

// Connect reads the certificates and makes a Client. It sends nothing yet.
// Its error is a *FileError where a file is the matter.
func Connect(c Config) (*Client, error) {
	if err := checkFiles(c); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the core API: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})

	config := &rest.Config{
		Host:      c.URL,
		APIPath:   "/api",
		UserAgent: c.UserAgent,
		QPS:       queriesASecond,
		Burst:     queryBurst,
		// The cluster is on this host. A proxy of the environment would only
		// be in the way, and for names other than localhost Go would use it.
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
		WarningHandler:  rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &corev1.SchemeGroupVersion,
			// Only the kinds that are registered above are ever decoded.
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s with %s: %w", c.URL, c.CertFile, err)
	}
	return &Client{rest: client, config: config, scheme: scheme}, nil
}

// URL is the address of the apiserver.
func (c *Client) URL() string { return c.config.Host }

// REST makes requests to the core API.
func (c *Client) REST() *rest.RESTClient { return c.rest }

// Config is what further connections need. It is the Client's own: callers
// copy it before they change it.
func (c *Client) Config() *rest.Config { return c.config }

// ParameterCodec writes the options of requests.
func (c *Client) ParameterCodec() runtime.ParameterCodec { return runtime.NewParameterCodec(c.scheme) }

// FileError is a certificate file that cannot be used.
type FileError struct {
	Path string
	Err  error
}

// Error names the file and what is the matter with it.
func (e *FileError) Error() string { return fmt.Sprintf("reading %s: %v", e.Path, e.Err) }

// Unwrap is the error of the file system.
func (e *FileError) Unwrap() error { return e.Err }

// checkFiles finds out now what client-go would only write to its log when
// the first connection is made.
func checkFiles(c Config) error {
	for _, path := range []string{c.CAFile, c.CertFile, c.KeyFile} {
		if err := readable(path); err != nil {
			return err
		}
	}
	ca, err := os.ReadFile(c.CAFile)
	if err != nil {
		return &FileError{Path: c.CAFile, Err: err}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return &FileError{Path: c.CAFile, Err: errors.New("it holds no certificate (PEM)")}
	}
	if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
		return &FileError{Path: c.CertFile, Err: fmt.Errorf("with the key %s: %w", c.KeyFile, err)}
	}
	return nil
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return &FileError{Path: path, Err: err}
	}
	return f.Close()
}
