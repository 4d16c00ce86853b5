package faultserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

var errPrecondition = errors.New("the UID in the precondition does not match the UID in record")

// WatchPlan is how one watch goes.
type WatchPlan struct {
	// CloseAfter ends the watch after so many events; 0 lets it go on.
	CloseAfter int
	// Drop are the events that the watch leaves out, counted from 1.
	Drop []int
	// Silent has the watch open without ever sending anything.
	Silent bool
	// Expired has the watch say that its version is too old (410 Gone).
	Expired bool
}

// OnWatch says how each watch goes; n counts them from 1.
func (s *Server) OnWatch(plan func(n int) WatchPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onWatch = plan
}

// watch sends the changes of Pods that came after the version asked for, and
// those to come.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, asked Request) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		fail(w, apierrors.NewBadRequest("a watch needs a resource version here: "+err.Error()))
		return
	}
	s.mu.Lock()
	s.record.watches++
	plan := s.onWatch(s.record.watches)
	s.touch()
	s.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	if plan.Expired {
		status := apierrors.NewResourceExpired("too old resource version").ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		_ = writeEvent(w, watch.Error, status)
		return
	}
	if plan.Silent {
		Silence().respond(s, w, r)
		return
	}
	// A client that leaves ends the wait for the next change.
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-r.Context().Done():
		case <-s.stop:
		case <-ended:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	}()
	wanted := func(c change) bool {
		return c.pod.Namespace == asked.Namespace && selector.Matches(fields.Set{"metadata.name": c.pod.Name})
	}
	s.send(w, r, from, wanted, plan)
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, from int, wanted func(change) bool, plan WatchPlan) {
	flusher, _ := w.(http.Flusher)
	dropped := map[int]bool{}
	for _, n := range plan.Drop {
		dropped[n] = true
	}
	for count := 1; plan.CloseAfter == 0 || count <= plan.CloseAfter; count++ {
		next, ok := s.nextChange(r, from, wanted)
		if !ok {
			return
		}
		from = next.version
		if dropped[count] {
			continue
		}
		if err := writeEvent(w, next.kind, next.pod); err != nil {
			return
		}
		flusher.Flush()
	}
}

// nextChange waits for the next change after a version; ok is false when the
// client or the Server has gone.
func (s *Server) nextChange(r *http.Request, after int, wanted func(change) bool) (next change, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for _, c := range s.store.history {
			if c.version > after && wanted(c) {
				return c, true
			}
		}
		select {
		case <-r.Context().Done():
			return change{}, false
		case <-s.stop:
			return change{}, false
		default:
		}
		s.changed.Wait()
	}
}

func writeEvent(w http.ResponseWriter, kind watch.EventType, object any) error {
	return json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
}
