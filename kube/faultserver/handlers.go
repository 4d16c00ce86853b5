package faultserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// serve is the way of every request: it is recorded, meets a fault or not, and
// is carried out.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	asked, known := parse(r)
	if r.Body != nil && asked.Resource != "pods/exec" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Body = string(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.note(asked)
	if fault, meets := s.fault(asked); meets {
		if fault.carryOut {
			s.handle(httptest.NewRecorder(), r, asked)
		}
		fault.respond(s, w, r)
		return
	}
	if !known {
		fail(w, apierrors.NewNotFound(corev1.Resource(asked.Resource), asked.Name))
		return
	}
	s.handle(w, r, asked)
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request, asked Request) {
	switch asked.Resource + " " + asked.Verb {
	case "pods create":
		s.create(w, r, asked)
	case "pods get":
		s.get(w, asked)
	case "pods list":
		s.list(w, r, asked)
	case "pods watch":
		s.watch(w, r, asked)
	case "pods patch":
		s.patch(w, asked)
	case "pods delete":
		s.delete(w, asked)
	case "pods/log get":
		s.log(w, r, asked)
	case "secrets create":
		s.createSecret(w, asked)
	case "secrets patch":
		s.patchSecret(w, asked)
	case "secrets delete":
		s.deleteSecret(w, asked)
	case "pods/exec create", "pods/exec get":
		s.exec(w, r, asked)
	case "events list":
		s.listEvents(w, r, asked)
	case "nodes get":
		s.getNode(w, asked)
	case "nodes list":
		s.listNodes(w)
	case versionResource + " get":
		s.version(w)
	case readyResource + " get":
		_, _ = io.WriteString(w, "ok")
	case identityResource + " create":
		s.identity(w, r)
	case accessResource + " create":
		s.access(w, asked)
	default:
		fail(w, apierrors.NewMethodNotSupported(corev1.Resource(asked.Resource), asked.Verb))
	}
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writeStatus(w, err.ErrStatus)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, asked Request) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(asked.Body), pod); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	pod.Namespace = asked.Namespace
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store.index(pod.Namespace, pod.Name) >= 0 {
		fail(w, apierrors.NewAlreadyExists(corev1.Resource("pods"), pod.Name))
		return
	}
	if r.URL.Query().Get("dryRun") != "" {
		writeJSON(w, http.StatusCreated, pod)
		return
	}
	added := s.store.add(pod)
	s.walk(added, s.onCreate)
	s.touch()
	writeJSON(w, http.StatusCreated, added)
}

func (s *Server) get(w http.ResponseWriter, asked Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.store.index(asked.Namespace, asked.Name)
	if i < 0 {
		fail(w, apierrors.NewNotFound(corev1.Resource("pods"), asked.Name))
		return
	}
	writeJSON(w, http.StatusOK, s.store.pods[i])
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, asked Request) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.store.version)},
		Items:    []corev1.Pod{},
	}
	for _, p := range s.store.pods {
		if (asked.Namespace == metav1.NamespaceAll || p.Namespace == asked.Namespace) && selector.Matches(labels.Set(p.Labels)) {
			list.Items = append(list.Items, *p)
		}
	}
	writeJSON(w, http.StatusOK, list)
}

// delete is the apiserver's: a Pod without a node or with grace 0 goes at
// once, any other first gets its deletion time, and goes when its kubelet has
// ended it.
func (s *Server) delete(w http.ResponseWriter, asked Request) {
	options := metav1.DeleteOptions{}
	if asked.Body != "" {
		if err := json.Unmarshal([]byte(asked.Body), &options); err != nil {
			fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.store.index(asked.Namespace, asked.Name)
	if i < 0 {
		fail(w, apierrors.NewNotFound(corev1.Resource("pods"), asked.Name))
		return
	}
	pod := s.store.pods[i].DeepCopy()
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
		fail(w, apierrors.NewConflict(corev1.Resource("pods"), asked.Name, errPrecondition))
		return
	}
	grace := int64(30)
	if options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	if grace == 0 || pod.Spec.NodeName == "" {
		s.store.remove(i)
	} else {
		markDeleted(pod, grace)
		s.store.put(watch.Modified, pod)
		if !s.lingering {
			s.store.remove(i)
		}
	}
	s.touch()
	writeJSON(w, http.StatusOK, pod)
}

func (s *Server) getNode(w http.ResponseWriter, asked Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.store.nodes {
		if n.Name == asked.Name {
			writeJSON(w, http.StatusOK, n)
			return
		}
	}
	fail(w, apierrors.NewNotFound(corev1.Resource("nodes"), asked.Name))
}

func (s *Server) listNodes(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{}}
	for _, n := range s.store.nodes {
		list.Items = append(list.Items, *n)
	}
	writeJSON(w, http.StatusOK, list)
}
