package cluster

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// redirectError is a server that sends requests elsewhere. They carry the
// caller's token or certificate, so they do not go there.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return "it sends requests on to " + e.to + ", where the driver does not follow with its credentials"
}

// redirected reports whether a server has sent the request elsewhere.
func redirected(err error) bool {
	var sent *redirectError
	return errors.As(err, &sent)
}

// httpClient is the client for a configuration. It follows nobody to another
// server, nor out of TLS: Go's own client would show a token there
// (net/http, Client.Do keeps headers for the same host, whatever the scheme).
func httpClient(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		first := before[0].URL
		if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
			return &redirectError{to: fmt.Sprintf("%s://%s", next.URL.Scheme, next.URL.Host)}
		}
		if len(before) >= mostRedirects {
			return &redirectError{to: "one place after the other"}
		}
		return nil
	}
	return client, nil
}

// mostRedirects is how often a server may send a request on within itself.
const mostRedirects = 3
