package faultserver

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// openWebSocket upgrades the connection. As an apiserver does, it says once
// that the connection is there, with an empty message.
func (s *Server) openWebSocket(w http.ResponseWriter, r *http.Request, _ *net.TCPConn) (connection, map[string]channel) {
	s.mu.Lock()
	protocols := s.protocols
	s.mu.Unlock()
	const protocol = remotecommand.StreamProtocolV5Name
	if !slices.Contains(protocols, protocol) || !slices.Contains(websocket.Subprotocols(r), protocol) {
		w.WriteHeader(http.StatusForbidden) // as golang.org/x/net/websocket does
		return nil, nil
	}
	upgrader := websocket.Upgrader{Subprotocols: []string{protocol}}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, nil // Upgrade has answered
	}
	c := &webSocket{socket: socket, gone: make(chan bool), stdin: newInbox()}
	channels := map[string]channel{corev1.StreamTypeError: c.output(remotecommand.StreamErr)}
	for kind, number := range map[string]byte{corev1.StreamTypeStdout: remotecommand.StreamStdOut, corev1.StreamTypeStderr: remotecommand.StreamStdErr} {
		if wanted(r.URL.Query(), kind) {
			channels[kind] = c.output(number)
		}
	}
	if wanted(r.URL.Query(), corev1.StreamTypeStdin) {
		channels[corev1.StreamTypeStdin] = c.stdin
	}
	go c.receive()
	_ = c.send(remotecommand.StreamStdOut, nil)
	return c, channels
}

// webSocket is the server's side of a command over WebSocket.
type webSocket struct {
	socket *websocket.Conn
	gone   chan bool
	stdin  *inbox

	// mu guards what is written.
	mu   sync.Mutex
	open int // output streams
}

// receive takes what the client sends, as fast as it comes: a program that
// reads nothing must not hide that its client has gone.
func (c *webSocket) receive() {
	defer close(c.gone)
	defer c.stdin.end()
	for {
		_, message, err := c.socket.ReadMessage()
		switch {
		case err != nil:
			return
		case len(message) == 2 && message[0] == remotecommand.StreamClose && message[1] == remotecommand.StreamStdIn:
			c.stdin.end()
		case len(message) > 0 && message[0] == remotecommand.StreamStdIn:
			c.stdin.put(message[1:])
		}
	}
}

func (c *webSocket) send(channel byte, p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, p...))
}

// closeWith sends a close frame.
func (c *webSocket) closeWith(code int) {
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}

func (c *webSocket) output(number byte) channel {
	c.open++
	return &webOutput{conn: c, number: number}
}

// CloseChan is closed when the client has gone.
func (c *webSocket) CloseChan() <-chan bool { return c.gone }

// Close closes the connection without a word.
func (c *webSocket) Close() error { return c.socket.Close() }

func (c *webSocket) goAway() { c.closeWith(websocket.CloseGoingAway) }

// webOutput is a stream to the client. The protocol has no way to end one of
// them: with the last the connection ends.
type webOutput struct {
	conn   *webSocket
	number byte
	closed sync.Once
}

// Read finds nothing: clients send nothing on these streams.
func (*webOutput) Read([]byte) (int, error) { return 0, io.EOF }

// Write sends one message.
func (o *webOutput) Write(p []byte) (int, error) {
	if err := o.conn.send(o.number, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the stream.
func (o *webOutput) Close() error {
	o.closed.Do(func() {
		o.conn.mu.Lock()
		o.conn.open--
		last := o.conn.open == 0
		o.conn.mu.Unlock()
		if last {
			o.conn.closeWith(websocket.CloseNormalClosure)
		}
	})
	return nil
}

// Reset is Close: WebSocket knows nothing else.
func (o *webOutput) Reset() error { return o.Close() }

// inbox is stdin; it takes whatever comes.
type inbox struct {
	mu      sync.Mutex
	changed *sync.Cond
	text    bytes.Buffer
	ended   bool
}

func newInbox() *inbox {
	i := &inbox{}
	i.changed = sync.NewCond(&i.mu)
	return i
}

func (i *inbox) put(p []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, _ = i.text.Write(p)
	i.changed.Broadcast()
}

func (i *inbox) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.changed.Broadcast()
}

// Read waits for what comes.
func (i *inbox) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.text.Len() == 0 && !i.ended {
		i.changed.Wait()
	}
	if i.text.Len() == 0 {
		return 0, io.EOF
	}
	return i.text.Read(p)
}

// Write is not for the server.
func (*inbox) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Close ends the stream.
func (i *inbox) Close() error {
	i.end()
	return nil
}

// Reset ends the stream.
func (i *inbox) Reset() error { return i.Close() }
