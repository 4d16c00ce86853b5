// Package stream runs commands in the containers of a Pod, over SPDY or
// WebSocket, and never takes a lost connection for the end of the command.
//
// client-go's own executor returns nil, as for exit code 0, when the
// connection goes away before the command's status has arrived: its reader of
// the error stream does not tell "no status" from "success"
// (tools/remotecommand/errorstream.go in client-go). A server that speaks
// version 4 of the protocol or later always sends a status, so here a missing
// one is an error.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// Command is one command in one container.
type Command struct {
	Namespace, Pod, Container string
	// Args are the program and its arguments. The apiserver's audit log holds
	// them, so nothing secret may be among them.
	Args []string
	// Stdin is what the command reads; nil for nothing at all. If it can be
	// closed, it is once nothing more is read from it, so that whoever writes
	// to the other end of a pipe does not wait in vain.
	Stdin io.Reader
	// Stdout and Stderr get what the command writes. They may be one writer;
	// then one goroutine at a time writes to it. Nothing is written to them
	// after Run has returned.
	Stdout, Stderr io.Writer
	// Sizes, if not nil, has the command run on a terminal, whose present size
	// arrives on it each time that it changes. Then all output comes on Stdout.
	Sizes <-chan Size
}

// Size is the size of a terminal in characters.
type Size struct {
	Width, Height uint16
}

// Runner runs commands on one cluster.
type Runner struct {
	cluster *cluster.Client
	over    Transport
}

// NewRunner is a Runner for the cluster of c, over a transport.
func NewRunner(c *cluster.Client, over Transport) *Runner { return &Runner{cluster: c, over: over} }

// NotStartedError says that the command did not start: the connection was
// refused or could not be upgraded. The same command may be tried again.
type NotStartedError struct{ Err error }

// Error is what the cluster answered.
func (e *NotStartedError) Error() string { return "the command did not start: " + e.Err.Error() }

// Unwrap is what the cluster answered.
func (e *NotStartedError) Unwrap() error { return e.Err }

// Reason is what keeps a stage from being reached. That the command which was to
// reach it did not start says nothing of the stage.
func Reason(err error) error {
	var notStarted *NotStartedError
	if errors.As(err, &notStarted) {
		return notStarted.Err
	}
	return err
}

// LostError says that the connection went away before the command's status
// arrived. The command may have ended or may go on.
type LostError struct{ Err error }

// Error says so, with the connection's own error where it has one.
func (e *LostError) Error() string {
	text := "the connection broke before the command's end was known"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is the connection's error, nil if it ended without one.
func (e *LostError) Unwrap() error { return e.Err }

// Run runs the command to its end and gives its exit code. A code is given
// only if the server has sent it. Otherwise the error is a *NotStartedError,
// a *LostError, a *RuntimeError, a *bounded.TooLongError of a writer of the
// Command, or that of ctx.
//
// Over WebSocket exit code 0 is not proof that the command has ended: the
// apiserver says so too when it loses its own connection to the node, since it
// uses client-go's executor for that (streamtranslator.go in
// k8s.io/apiserver/pkg/util/proxy). Every command here proves its end itself.
func (r *Runner) Run(ctx context.Context, c Command) (int, error) {
	conn, err := r.connect(ctx, c)
	var lost *LostError
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.As(err, &lost):
		return 0, lost
	case err != nil:
		return 0, &NotStartedError{Err: err}
	}
	session, err := open(ctx, conn, c)
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, &LostError{Err: err}
	}
	session.begin(ctx, c)
	code, err := session.wait(ctx)
	var runtime *RuntimeError
	if r.over == WebSocket && errors.As(err, &runtime) && !strings.Contains(runtime.Message, runtimeWord) {
		// The connection is open before the apiserver has reached the node. What
		// happens on that way is told like the end of the command.
		err = &LostError{Err: runtime}
	}
	return code, err
}

// runtimeWord is how a node begins what its container runtime says of a command
// (ServeExec in k8s.io/cri-streaming/pkg/streaming/remotecommand).
const runtimeWord = "error executing command in container"

// connectLimit is how long the server may take to upgrade the connection.
const connectLimit = 10 * time.Second

// connect is dial, within a time.
func (r *Runner) connect(ctx context.Context, c Command) (httpstream.Connection, error) {
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := bounded.Do(limited,
		func() (httpstream.Connection, error) { return r.dial(limited, c) },
		func(late httpstream.Connection) { _ = late.Close() })
	if errors.Is(err, context.DeadlineExceeded) {
		err = &unansweredError{err}
		if r.over == WebSocket {
			err = &LostError{Err: err} // the command may have started
		}
	}
	return conn, err
}

// unansweredError says that connecting has taken too long.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string {
	return fmt.Sprintf("the server did not answer within %d s", int(connectLimit.Seconds()))
}

func (e *unansweredError) Unwrap() error { return e.err }

// refusal is the server's answer as an error of apierrors.
func refusal(response *http.Response) error {
	body, err := bounded.ReadAll(response.Body, bounded.Short)
	if err != nil && !tooLong(err) {
		return fmt.Errorf("reading the answer %s: %w", response.Status, err)
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Status == metav1.StatusFailure && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    int32(response.StatusCode),
		Reason:  reasonFor(response.StatusCode),
		Message: strings.TrimSpace(response.Status + ": " + string(body)),
	}}
}

func reasonFor(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	}
	return metav1.StatusReasonUnknown
}

// MayReachLater says whether a command that did not start may start a little
// later: the apiserver restarts, the node's connection to it is not up yet
// (k3s answers 502 and "error dialing backend" until it is), or the kubelet
// does not know the Pod or its container, as for a moment after its own
// restart. A refusal of the caller is final, and so is the apiserver's word
// that the Pod is gone.
func MayReachLater(err error) bool {
	var notStarted *NotStartedError
	return errors.As(err, &notStarted) && !cluster.Denied(err) && !PodGone(err)
}

// MayRepeat reports whether a command that may be done twice is worth another
// try: it may reach the Pod later, or its connection was lost.
func MayRepeat(err error) bool {
	var lost *LostError
	return MayReachLater(err) || errors.As(err, &lost) || errors.Is(err, context.DeadlineExceeded)
}

// PodGone says whether the apiserver itself does not know the Pod any more.
// The kubelet's "not found" comes as plain text.
func PodGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "pods"
}
