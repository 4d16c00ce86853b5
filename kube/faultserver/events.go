package faultserver

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// AddEvent stores an event, as a kubelet or the scheduler writes it.
func (s *Server) AddEvent(event corev1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
	s.touch()
}

// listEvents knows the fields by which a client asks for the events of one
// object.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, asked Request) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	list := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		about := e.InvolvedObject
		if e.Namespace == asked.Namespace && selector.Matches(fields.Set{
			"involvedObject.uid": string(about.UID), "involvedObject.kind": about.Kind, "involvedObject.name": about.Name,
		}) {
			list.Items = append(list.Items, e)
		}
	}
	writeJSON(w, http.StatusOK, list)
}
