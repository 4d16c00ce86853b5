package registry

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
)

// requireBasicAuth lets only requests with this user name and password through
// to next and answers all others as the distribution specification says: 401,
// a challenge, and an error document.
func requireBasicAuth(username, password string, next http.Handler) http.Handler {
	wantUser, wantPassword := sha256.Sum256([]byte(username)), sha256.Sum256([]byte(password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gotName, gotSecret, _ := r.BasicAuth()
		gotUser, gotPassword := sha256.Sum256([]byte(gotName)), sha256.Sum256([]byte(gotSecret))
		// Hashes of equal length and no short cut: the time taken says
		// nothing about the credentials.
		match := subtle.ConstantTimeCompare(gotUser[:], wantUser[:]) &
			subtle.ConstantTimeCompare(gotPassword[:], wantPassword[:])
		if match == 1 {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="local tenant registry", charset="UTF-8"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(errorDocument{[]errorEntry{{
			Code:    "UNAUTHORIZED",
			Message: "this listener needs the user name and password of the registry",
		}}})
	})
}

// errorDocument is the body of an error as the OCI distribution specification
// wants it ("Error Codes").
type errorDocument struct {
	Errors []errorEntry `json:"errors"`
}

type errorEntry struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
