package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/kube/crash"
)

// webSocketProtocol is the one version that apiservers speak over WebSocket
// and in which a client can end stdin.
const webSocketProtocol = remotecommand.StreamProtocolV5Name

// webSocketBuffer is how much is read and written at once, in bytes: what
// io.Copy hands on, and the number of its channel.
const webSocketBuffer = 33 << 10

// webSocketUpgrader opens one WebSocket.
type webSocketUpgrader struct {
	tls    *tls.Config
	ctx    context.Context // of the request
	socket *websocket.Conn
}

// RoundTrip implements http.RoundTripper. Once the request may have arrived,
// an error is a *LostError: the command starts with the connection.
func (u *webSocketUpgrader) RoundTrip(ask *http.Request) (*http.Response, error) {
	var conn *upgradable
	dialer := websocket.Dialer{
		// No proxy: the cluster is on this host.
		NetDialTLSContext: func(ctx context.Context, _, address string) (_ net.Conn, err error) {
			if conn, err = dialTLS(ctx, u.tls, address); err != nil {
				return nil, err
			}
			return conn, nil
		},
		Subprotocols:    []string{webSocketProtocol},
		ReadBufferSize:  webSocketBuffer,
		WriteBufferSize: webSocketBuffer,
	}
	address := *ask.URL
	address.Scheme = "wss"
	socket, response, err := dialer.DialContext(ask.Context(), address.String(), ask.Header)
	switch {
	case errors.Is(err, websocket.ErrBadHandshake):
		return response, nil // a refusal like any other
	case err != nil && conn != nil && !cluster.Denied(err):
		// With TLS 1.3 the server looks at the client's certificate after the
		// client is done; that denial is none of these.
		return nil, &LostError{Err: err}
	case err != nil:
		return nil, err
	}
	conn.upgraded()
	u.ctx, u.socket = ask.Context(), socket
	return response, nil
}

// NewConnection implements httpstream.UpgradeRoundTripper.
func (u *webSocketUpgrader) NewConnection(*http.Response) (httpstream.Connection, error) {
	if u.socket == nil {
		return nil, errors.New("the server has upgraded the connection to something else than a WebSocket")
	}
	if protocol := u.socket.Subprotocol(); protocol != webSocketProtocol {
		_ = u.socket.Close()
		return nil, fmt.Errorf("the server speaks version %q of the exec protocol over WebSocket, not %s", protocol, webSocketProtocol)
	}
	return newWebSocket(u.ctx, u.socket), nil
}

// webSocket is the connection of one command. Each message begins with the
// number of the channel it belongs to.
type webSocket struct {
	socket  *websocket.Conn
	streams map[string]*webStream
	writing sync.Mutex
	closed  chan bool
}

func newWebSocket(ctx context.Context, socket *websocket.Conn) *webSocket {
	w := &webSocket{socket: socket, streams: map[string]*webStream{}, closed: make(chan bool)}
	for kind, channel := range map[string]byte{
		corev1.StreamTypeStdin: remotecommand.StreamStdIn, corev1.StreamTypeStdout: remotecommand.StreamStdOut,
		corev1.StreamTypeStderr: remotecommand.StreamStdErr, corev1.StreamTypeError: remotecommand.StreamErr,
		corev1.StreamTypeResize: remotecommand.StreamResize,
	} {
		s := &webStream{conn: w, kind: kind, channel: channel}
		s.PipeReader, s.arrives = io.Pipe()
		w.streams[kind] = s
	}
	crash.Go(ctx, func() { w.receive() })
	crash.Go(ctx, func() { w.ping() })
	return w
}

// receive hands messages to their streams until the connection ends. All
// streams end with it, in good order only if the server said so.
func (w *webSocket) receive() {
	defer close(w.closed)
	byChannel := map[byte]*webStream{}
	for _, s := range w.streams {
		byChannel[s.channel] = s
	}
	buffer := make([]byte, webSocketBuffer)
	var err error
	for err == nil {
		err = w.message(byChannel, buffer)
	}
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		err = io.EOF
	}
	for _, s := range w.streams {
		_ = s.arrives.CloseWithError(err)
	}
}

// message takes one message.
func (w *webSocket) message(byChannel map[byte]*webStream, buffer []byte) error {
	_, message, err := w.socket.NextReader()
	if err != nil {
		return err
	}
	var channel [1]byte
	if _, err := io.ReadFull(message, channel[:]); errors.Is(err, io.EOF) {
		return nil // an empty message
	} else if err != nil {
		return err
	}
	var to io.Writer = io.Discard
	if s := byChannel[channel[0]]; s != nil {
		to = s.arrives
	}
	_, err = io.CopyBuffer(to, message, buffer)
	if errors.Is(err, io.ErrClosedPipe) {
		return nil // nobody reads this stream any more; the rest is skipped
	}
	return err
}

// ping shows signs of life, so that nothing on the way ends a silent
// connection. Failures are found by receive.
func (w *webSocket) ping() {
	every := time.NewTicker(pingEvery)
	defer every.Stop()
	for {
		select {
		case <-w.closed:
			return
		case now := <-every.C:
			_ = w.socket.WriteControl(websocket.PingMessage, nil, now.Add(pingEvery))
		}
	}
}

// CreateStream implements httpstream.Connection: the streams are there from the
// beginning.
func (w *webSocket) CreateStream(headers http.Header) (httpstream.Stream, error) {
	s := w.streams[headers.Get(corev1.StreamType)]
	if s == nil {
		return nil, fmt.Errorf("no such stream over WebSocket: %q", headers.Get(corev1.StreamType))
	}
	return s, nil
}

// Close implements httpstream.Connection.
func (w *webSocket) Close() error {
	for _, s := range w.streams {
		_ = s.PipeReader.Close() // receive may wait for its reader
	}
	return w.socket.Close()
}

// CloseChan implements httpstream.Connection.
func (w *webSocket) CloseChan() <-chan bool { return w.closed }

// SetIdleTimeout implements httpstream.Connection; a stage may be silent.
func (w *webSocket) SetIdleTimeout(time.Duration) {}

// RemoveStreams implements httpstream.Connection; they go with it.
func (w *webSocket) RemoveStreams(...httpstream.Stream) {}

// webStream is one channel of a webSocket.
type webStream struct {
	*io.PipeReader
	arrives *io.PipeWriter
	conn    *webSocket
	kind    string
	channel byte
}

// Write implements io.Writer: one message.
func (s *webStream) Write(p []byte) (int, error) {
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	message, err := s.conn.socket.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return 0, err
	}
	if _, err := message.Write([]byte{s.channel}); err != nil {
		return 0, err
	}
	n, err := message.Write(p)
	if err != nil {
		return n, err
	}
	return n, message.Close()
}

// Close ends stdin; the client sends nothing on the other streams.
func (s *webStream) Close() error {
	if s.channel != remotecommand.StreamStdIn {
		return nil
	}
	s.conn.writing.Lock()
	defer s.conn.writing.Unlock()
	return s.conn.socket.WriteMessage(websocket.BinaryMessage, []byte{remotecommand.StreamClose, s.channel})
}

// Reset implements httpstream.Stream.
func (s *webStream) Reset() error { return errors.Join(s.Close(), s.PipeReader.Close()) }

// Headers implements httpstream.Stream.
func (s *webStream) Headers() http.Header {
	return http.Header{http.CanonicalHeaderKey(corev1.StreamType): {s.kind}}
}

// Identifier implements httpstream.Stream.
func (s *webStream) Identifier() uint32 { return uint32(s.channel) }
