package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
)

// Transport is the protocol that carries a command's streams.
type Transport string

// The transports of Kubernetes.
const (
	// SPDY is what kubectl spoke for its first ten years. A command starts when
	// its streams are opened.
	SPDY Transport = "spdy"
	// WebSocket is its successor (v5.channel.k8s.io), for clusters whose proxies
	// carry no SPDY. A command starts with the connection.
	WebSocket Transport = "websocket"
)

// spdyProtocols are the versions of the exec protocol in which the end of a
// command is told by a status (k8s.io/apimachinery/pkg/util/remotecommand).
// Newest first.
var spdyProtocols = []string{"v5.channel.k8s.io", "v4.channel.k8s.io"}

// pingEvery is how often a silent connection shows a sign of life, as in
// client-go.
const pingEvery = 5 * time.Second

// dial asks for the command and upgrades the connection.
func (r *Runner) dial(ctx context.Context, c Command) (httpstream.Connection, error) {
	method := http.MethodPost
	if r.over == WebSocket {
		method = http.MethodGet // RFC 6455, 4.1
	}
	// The verb of the one transport, and of the other: a WebSocket needs "get",
	// and from Kubernetes 1.35 on "create" too.
	// rbac: pods/exec create get
	request := r.cluster.REST().Verb(method).Namespace(c.Namespace).Resource("pods").Name(c.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: c.Container,
			Command:   c.Args,
			Stdin:     c.Stdin != nil,
			Stdout:    true,
			Stderr:    c.Sizes == nil, // a terminal has one output
			TTY:       c.Sizes != nil,
		}, r.cluster.ParameterCodec())
	ask, err := http.NewRequestWithContext(ctx, method, request.URL().String(), nil)
	if err != nil {
		return nil, err
	}
	upgrader, transport, err := r.upgrader()
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	return upgrade(&http.Client{Transport: transport}, upgrader, ask)
}

// upgrader makes a connection of its own for each command, to where the cluster
// is at present.
func (r *Runner) upgrader() (httpstream.UpgradeRoundTripper, http.RoundTripper, error) {
	config := r.cluster.Config()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}
	var upgrader httpstream.UpgradeRoundTripper
	if r.over == WebSocket {
		upgrader = &webSocketUpgrader{tls: tlsConfig}
	} else {
		upgrader = &spdyUpgrader{tls: tlsConfig}
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, upgrader)
	return upgrader, wrapped, err
}

// upgrade sends the request and takes over its connection. client-go has the
// same (transport/spdy.Negotiate), but gives the server's refusal as plain
// text, without the status by which a caller tells "try again" from "no".
func upgrade(client *http.Client, upgrader httpstream.UpgradeRoundTripper, ask *http.Request) (httpstream.Connection, error) {
	response, err := client.Do(ask)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		// Its text has the whole address, in which the command's arguments
		// stand: a program of ours, line for line.
		err = connecting(ask.URL.Host, wrapped.Err)
		var lost *LostError
		if errors.As(wrapped.Err, &lost) {
			err = &LostError{Err: connecting(ask.URL.Host, lost.Err)}
		}
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusal(response)
	}
	return upgrader.NewConnection(response)
}

// connecting says where a connection went, unless its error does.
func connecting(host string, err error) error {
	if strings.HasPrefix(err.Error(), "dial tcp "+host) {
		return err
	}
	return fmt.Errorf("connecting to %s: %w", host, err)
}
