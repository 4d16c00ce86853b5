package faultserver

import (
	"encoding/json"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// patch merges labels, annotations and the deadline into a Pod (a merge patch of
// those), and refuses one that names another UID, as the apiserver does.
func (s *Server) patch(w http.ResponseWriter, asked Request) {
	patch := struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal([]byte(asked.Body), &patch); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.store.index(asked.Namespace, asked.Name)
	if i < 0 {
		fail(w, apierrors.NewNotFound(corev1.Resource("pods"), asked.Name))
		return
	}
	pod := s.store.pods[i].DeepCopy()
	if patch.Metadata.UID != "" && patch.Metadata.UID != pod.UID {
		fail(w, apierrors.NewConflict(corev1.Resource("pods"), asked.Name, errPrecondition))
		return
	}
	for _, merge := range []struct {
		into *map[string]string
		from map[string]string
	}{{&pod.Labels, patch.Metadata.Labels}, {&pod.Annotations, patch.Metadata.Annotations}} {
		for name, value := range merge.from {
			if *merge.into == nil {
				*merge.into = map[string]string{}
			}
			(*merge.into)[name] = value
		}
	}
	if deadline := patch.Spec.ActiveDeadlineSeconds; deadline != nil {
		if now := pod.Spec.ActiveDeadlineSeconds; now != nil && *deadline > *now {
			fail(w, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), pod.Name, nil))
			return
		}
		pod.Spec.ActiveDeadlineSeconds = deadline
	}
	s.store.put(watch.Modified, pod)
	s.touch()
	writeJSON(w, http.StatusOK, pod)
}
