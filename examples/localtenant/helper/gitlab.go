package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// tokenHeader authenticates a job (GitLab's REST API, job artifacts).
const tokenHeader = "JOB-TOKEN"

// gitlab is the GitLab server and the job whose artifacts are asked for.
type gitlab struct {
	url   string
	token string
	id    int64

	caFile, certFile, keyFile string
}

// bind adds the flags that name the server and the job.
func (g *gitlab) bind(cmd *cobra.Command, h host) {
	flags := cmd.Flags()
	flags.StringVar(&g.url, "url", "", "URL of GitLab")
	flags.StringVar(&g.token, "token", "", "token of the job")
	flags.Int64Var(&g.id, "id", 0, "number of the job")
	// The runner puts these files' paths into the job's environment.
	flags.StringVar(&g.caFile, "tls-ca-file", h.getenv("CI_SERVER_TLS_CA_FILE"), "file with GitLab's certificate authority")
	flags.StringVar(&g.certFile, "tls-cert-file", h.getenv("CI_SERVER_TLS_CERT_FILE"), "file with the client certificate")
	flags.StringVar(&g.keyFile, "tls-key-file", h.getenv("CI_SERVER_TLS_KEY_FILE"), "file with the client certificate's key")
}

// check refuses incomplete arguments.
func (g *gitlab) check() error {
	switch {
	case g.url == "":
		return errors.New("--url is missing: the URL of GitLab")
	case g.token == "":
		return errors.New("--token is missing: the token of the job")
	case g.id <= 0:
		return errors.New("--id is missing: the number of the job")
	}
	parsed, err := url.Parse(g.url)
	if err != nil || parsed.Host == "" {
		return fmt.Errorf("--url %q is not the URL of a server", g.url)
	}
	return nil
}

// client makes an HTTP client for the server.
func (g *gitlab) client(timeout, headerTimeout time.Duration) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.caFile != "" {
		pem, err := os.ReadFile(g.caFile)
		if err != nil {
			return nil, fmt.Errorf("read GitLab's certificate authority: %w", err)
		}
		// A failure means no system pool; then this authority is all there is.
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", g.caFile)
		}
		config.RootCAs = pool
	}
	if g.certFile != "" && g.keyFile != "" {
		pair, err := tls.LoadX509KeyPair(g.certFile, g.keyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			TLSClientConfig:       config,
			ResponseHeaderTimeout: headerTimeout,
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: keepToken,
	}, nil
}

// keepToken keeps the job's token on its server: net/http takes only well-known
// headers off a request that is redirected elsewhere, such as to an object
// store.
func keepToken(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if req.URL.Host != via[0].URL.Host {
		req.Header.Del(tokenHeader)
	}
	return nil
}

// request makes a request for the job's artifacts.
func (g *gitlab) request(ctx context.Context, method string, query url.Values, body io.Reader) (*http.Request, error) {
	target := fmt.Sprintf("%s/api/v4/jobs/%d/artifacts", strings.TrimRight(g.url, "/"), g.id)
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make a request to GitLab: %w", err)
	}
	req.Header.Set(tokenHeader, g.token)
	return req, nil
}

// reasonOf is GitLab's own words for an answer, or the status.
func reasonOf(resp *http.Response) string {
	const enough = 64 << 10
	var answer struct {
		Message json.RawMessage `json:"message"`
		Error   string          `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, enough)).Decode(&answer) != nil {
		return resp.Status
	}
	var message string
	if json.Unmarshal(answer.Message, &message) != nil {
		message = string(answer.Message)
	}
	if message == "" {
		message = answer.Error
	}
	if message == "" {
		return resp.Status
	}
	return resp.Status + ": " + message
}
