package faultserver

import (
	"encoding/json"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Secrets are all Secrets there are, oldest first.
func (s *Server) Secrets() []corev1.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]corev1.Secret, 0, len(s.secrets))
	for _, secret := range s.secrets {
		all = append(all, *secret.DeepCopy())
	}
	return all
}

func (s *Server) secretIndex(asked Request) int {
	return slices.IndexFunc(s.secrets, func(o *corev1.Secret) bool { return o.Namespace == asked.Namespace && o.Name == asked.Name })
}

func (s *Server) createSecret(w http.ResponseWriter, asked Request) {
	secret := &corev1.Secret{}
	if err := json.Unmarshal([]byte(asked.Body), secret); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	secret.Namespace, asked.Name = asked.Namespace, secret.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secretIndex(asked) >= 0 {
		fail(w, apierrors.NewAlreadyExists(corev1.Resource("secrets"), secret.Name))
		return
	}
	secret.UID = newUID()
	s.secrets = append(s.secrets, secret)
	s.touch()
	writeJSON(w, http.StatusCreated, secret)
}

// patchSecret sets the owners of a Secret.
func (s *Server) patchSecret(w http.ResponseWriter, asked Request) {
	patch := struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}{}
	if err := json.Unmarshal([]byte(asked.Body), &patch); err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.secretIndex(asked)
	if i < 0 {
		fail(w, apierrors.NewNotFound(corev1.Resource("secrets"), asked.Name))
		return
	}
	s.secrets[i].OwnerReferences = patch.Metadata.OwnerReferences
	s.touch()
	writeJSON(w, http.StatusOK, s.secrets[i])
}

func (s *Server) deleteSecret(w http.ResponseWriter, asked Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.secretIndex(asked)
	if i < 0 {
		fail(w, apierrors.NewNotFound(corev1.Resource("secrets"), asked.Name))
		return
	}
	s.secrets = slices.Delete(s.secrets, i, i+1)
	s.touch()
	writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}
