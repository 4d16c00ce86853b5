package faultserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// Exec is one command in a container, as the program of that container sees
// it. A test's OnExec function plays the program; when it returns without
// having called Exit, Error, Break or Status, the command has ended with 0.
type Exec struct {
	Namespace, Pod, Container string
	Args                      []string
	// Stdin, Stdout and Stderr are the command's. Stdin is empty where the
	// client opened none.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Resize has the sizes of the terminal as JSON, for a command on one; it is
	// nil otherwise. Such a command has no Stderr.
	Resize io.Reader

	server   *Server
	socket   *net.TCPConn
	below    net.Conn
	conn     connection
	channels map[string]channel
	stdin    []byte // read so far; the Server's lock guards it
	ended    atomic.Bool
}

// OnExec says what commands do. The function runs once for each command, in a
// goroutine of its own.
func (s *Server) OnExec(program func(*Exec)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onExec = program
}

// Protocols sets the versions of the exec protocol that the Server speaks, in
// place of v5 and v4.
func (s *Server) Protocols(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protocols = names
}

// BreakAtStream resets the connection of the next exec when the client opens
// its nth stream, counted from 1: the upgrade has gone well, the command has
// not started.
func (s *Server) BreakAtStream(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breakAt = n
}

// exec upgrades the connection and runs the program.
func (s *Server) exec(w http.ResponseWriter, r *http.Request, asked Request) {
	if err := s.mayExec(asked); err != nil {
		fail(w, err)
		return
	}
	plain, err := socket(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	open := s.openSPDY
	if websocket.IsWebSocketUpgrade(r) {
		open = s.openWebSocket
	}
	below := &kept{ResponseWriter: w}
	conn, channels := open(below, r, plain)
	if conn == nil {
		return // the client has been answered, or has gone
	}
	defer conn.Close() //nolint:errcheck // the client may be gone
	query := r.URL.Query()
	e := &Exec{
		Namespace: asked.Namespace, Pod: asked.Name, Container: query.Get("container"), Args: query["command"],
		server: s, socket: plain, below: below.conn, conn: conn, channels: channels,
	}
	s.mu.Lock()
	program := s.onExec
	s.mu.Unlock()
	e.run(program)
}

// connection is what carries the streams of one command.
type connection interface {
	// CloseChan is closed when the client has gone.
	CloseChan() <-chan bool
	Close() error
	// goAway ends the connection in good order, but without a status.
	goAway()
}

// channel is one stream of a command.
type channel interface {
	io.ReadWriteCloser
	Reset() error
}

// mayExec is the apiserver's and the kubelet's look at the Pod.
func (s *Server) mayExec(asked Request) *apierrors.StatusError {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.store.index(asked.Namespace, asked.Name)
	switch {
	case i < 0:
		return apierrors.NewNotFound(corev1.Resource("pods"), asked.Name)
	case s.store.pods[i].Spec.NodeName == "":
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", asked.Name))
	}
	return nil
}

func (e *Exec) run(program func(*Exec)) {
	e.Stdin, e.Stdout = &stdinReader{e}, e.channels[corev1.StreamTypeStdout]
	if c := e.channels[corev1.StreamTypeStderr]; c != nil {
		e.Stderr = c
	}
	if c := e.channels[corev1.StreamTypeResize]; c != nil {
		e.Resize = c
	}
	s := e.server
	s.mu.Lock()
	s.record.execs = append(s.record.execs, e)
	s.record.running++
	s.touch()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.record.running--
		s.touch()
	}()
	program(e)
	if !e.ended.Load() {
		e.Exit(0)
	}
}

// Running is how many commands run at present.
func (s *Server) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.running
}

// stdinReader keeps what is read.
type stdinReader struct{ exec *Exec }

func (r *stdinReader) Read(p []byte) (int, error) {
	stream := r.exec.channels[corev1.StreamTypeStdin]
	if stream == nil {
		return 0, io.EOF
	}
	n, err := stream.Read(p)
	s := r.exec.server
	s.mu.Lock()
	defer s.mu.Unlock()
	r.exec.stdin = append(r.exec.stdin, p[:n]...)
	s.touch()
	return n, err
}

// Gone is closed when the client has closed the connection.
func (e *Exec) Gone() <-chan bool { return e.conn.CloseChan() }

// WaitGone waits until the client has gone or the Server ends.
func (e *Exec) WaitGone() {
	e.ended.Store(true)
	select {
	case <-e.Gone():
	case <-e.server.stop:
	}
}

// Exit ends the command with an exit code.
func (e *Exec) Exit(code int) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{
			Status: metav1.StatusFailure,
			Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code),
			}}},
			Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", code),
		}
	}
	e.end(status)
}

// Error ends the command with the container runtime's word that it could not
// be run.
func (e *Exec) Error(message string) {
	e.end(metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
		Message: "error executing command in container: " + message, Code: http.StatusInternalServerError,
	})
}

func (e *Exec) end(status metav1.Status) {
	text, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status always encodes
	}
	e.Status(text)
}

// Status closes the output and sends text on the error stream, in the order in
// which a kubelet does, and closes the connection once the client has. To close
// it before would reset it if the client has just sent a ping, and take with it
// what is still on its way.
func (e *Exec) Status(text []byte) {
	e.ended.Store(true)
	e.closeOutput()
	_, _ = e.channels[corev1.StreamTypeError].Write(text)
	_ = e.channels[corev1.StreamTypeError].Close()
	e.WaitGone()
	_ = e.conn.Close()
}

func (e *Exec) closeOutput() {
	_ = e.channels[corev1.StreamTypeStdout].Close()
	if e.Stderr != nil {
		_ = e.channels[corev1.StreamTypeStderr].Close()
	}
}

// Break is a way in which a connection ends without the command's status.
type Break string

// The ways in which a connection breaks.
const (
	// CloseStreams closes each stream as if the command had ended. Over
	// WebSocket that is a close frame with code 1000.
	CloseStreams Break = "all streams closed"
	// GoAway closes the connection in good order. Over WebSocket that is a
	// close frame with code 1001.
	GoAway Break = "connection closed (GOAWAY)"
	// ResetStreams resets each stream; the connection stays. There is no such
	// thing over WebSocket.
	ResetStreams Break = "streams reset"
	// FIN ends the TCP connection in good order.
	FIN Break = "TCP FIN"
	// RST ends the TCP connection at once.
	RST Break = "TCP RST"
	// Hang closes the output and leaves the error stream open.
	Hang Break = "output closed, error stream left open"
	// LostBehind is a connection that is lost between the apiserver and the
	// node. Over WebSocket the apiserver tells it as exit code 0
	// (streamtranslator.go in k8s.io/apiserver/pkg/util/proxy); over SPDY it
	// passes the loss on.
	LostBehind Break = "lost behind the apiserver, told as exit code 0"
)

// Break breaks the connection. After Hang it waits until the client goes.
func (e *Exec) Break(way Break) {
	e.ended.Store(true)
	switch way {
	case CloseStreams:
		for _, stream := range e.channels {
			_ = stream.Close()
		}
	case GoAway:
		e.conn.goAway()
	case ResetStreams:
		for _, stream := range e.channels {
			_ = stream.Reset()
		}
	case FIN:
		_ = e.socket.CloseWrite()
	case RST:
		reset(e.socket)
	case Hang:
		e.closeOutput()
	case LostBehind:
		e.Exit(0)
		return
	default:
		panic("faultserver: no such break: " + string(way))
	}
	// What else the server would do must not reach the client, or it would
	// see more than this one break.
	e.WaitGone()
}
