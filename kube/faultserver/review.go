package faultserver

import (
	"encoding/json"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Version is what the Server says of itself.
const Version = "v1.37.0+faults"

// Resources beside the core's that a caller asks about itself, the version, and
// whether the server is ready.
const (
	versionResource  = "version"
	readyResource    = "readyz"
	identityResource = "selfsubjectreviews"
	accessResource   = "selfsubjectaccessreviews"
)

// parseReview reads a request that is not for the core API.
func parseReview(r *http.Request) (parsed Request, ok bool) {
	switch strings.Trim(r.URL.Path, "/") {
	case "version":
		return Request{Verb: "get", Resource: versionResource}, true
	case "readyz":
		return Request{Verb: "get", Resource: readyResource}, true
	case "apis/authentication.k8s.io/v1/selfsubjectreviews":
		return Request{Verb: "create", Resource: identityResource}, true
	case "apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		return Request{Verb: "create", Resource: accessResource}, true
	}
	return Request{}, false
}

// Deny has the Server say that the caller lacks a right. It only says so;
// requests are carried out as before.
func (s *Server) Deny(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = append(s.denied, verb+" "+resource)
}

func (s *Server) version(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]string{"gitVersion": Version})
}

// identity tells whom the client certificate names.
func (s *Server) identity(w http.ResponseWriter, r *http.Request) {
	review := authenticationv1.SelfSubjectReview{}
	if len(r.TLS.PeerCertificates) > 0 {
		subject := r.TLS.PeerCertificates[0].Subject
		review.Status.UserInfo = authenticationv1.UserInfo{Username: subject.CommonName, Groups: append(subject.Organization, "system:authenticated")}
	}
	writeJSON(w, http.StatusCreated, review)
}

func (s *Server) access(w http.ResponseWriter, asked Request) {
	review := authorizationv1.SelfSubjectAccessReview{}
	if err := json.Unmarshal([]byte(asked.Body), &review); err != nil || review.Spec.ResourceAttributes == nil {
		fail(w, apierrors.NewBadRequest("a review without resource attributes"))
		return
	}
	a := review.Spec.ResourceAttributes
	right := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		right += "/" + a.Subresource
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	review.Status.Allowed = true
	for _, denied := range s.denied {
		if denied == right {
			review.Status = authorizationv1.SubjectAccessReviewStatus{Reason: "no RBAC policy matched"}
		}
	}
	writeJSON(w, http.StatusCreated, review)
}
