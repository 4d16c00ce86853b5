package faultserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what happens to a request in place of its answer. Make it with
// Answer, AnswerStatus, Reset, Silence, Abort or LoseReply.
type Fault struct {
	// carryOut is whether the request is carried out all the same.
	carryOut bool
	respond  func(s *Server, w http.ResponseWriter, r *http.Request)
}

// Answer answers with a code and a plain text, as a proxy would.
func Answer(code int, body string) Fault {
	return Fault{respond: func(_ *Server, w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }}
}

// AnswerStatus answers with a Status, as the apiserver does.
func AnswerStatus(code int, reason metav1.StatusReason, message string) Fault {
	return Fault{respond: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		writeStatus(w, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		})
	}}
}

// PodNotFound is the apiserver's own word that there is no such Pod. A kubelet
// that does not know it answers with plain text.
func PodNotFound(name string) Fault {
	return Fault{respond: func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		fail(w, apierrors.NewNotFound(corev1.Resource("pods"), name))
	}}
}

// Reset ends the connection with an RST, and with it every other request on
// the same connection.
func Reset() Fault {
	return Fault{respond: func(_ *Server, _ http.ResponseWriter, r *http.Request) {
		if conn, err := socket(r.Context()); err == nil {
			reset(conn)
		}
	}}
}

// Silence never answers.
func Silence() Fault {
	return Fault{respond: func(s *Server, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-s.stop:
		}
	}}
}

// Abort breaks off this request alone; over HTTP/2 the connection stays.
func Abort() Fault {
	return Fault{respond: func(*Server, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}
}

// LoseReply carries the request out and then resets the connection: the
// client cannot know that it was carried out.
func LoseReply() Fault {
	f := Reset()
	f.carryOut = true
	return f
}

type fault struct {
	Fault
	verb, resource string
	// namespace is the one of the requests, "" for any.
	namespace string
	left      int
}

// Fail has the next n requests of a verb and a resource meet a fault; "" means
// any verb or resource, and n below 0 all of them. Faults that match the same
// request take turns in the order in which they were given.
func (s *Server) Fail(n int, verb, resource string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{Fault: f, verb: verb, resource: resource, left: n})
}

// fault is the one that the request meets, if any.
func (s *Server) fault(r Request) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.left != 0 && matches(f.verb, r.Verb) && matches(f.resource, r.Resource) && matches(f.namespace, r.Namespace) {
			f.left--
			return f.Fault, true
		}
	}
	return Fault{}, false
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, fmt.Sprintf("writing the answer: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// FailIn has every request of a verb and a resource in one namespace meet a
// fault.
func (s *Server) FailIn(namespace, verb, resource string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{left: -1, verb: verb, resource: resource, namespace: namespace, Fault: f})
}
