package registry

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// accounts are the two users of the listeners that want a login. They have one
// password.
type accounts struct {
	// member may pull everything, guest may log in and pull nothing.
	member, guest string
	password      string
}

// account is what somebody turns out to be.
type account int

const (
	// anonymous has shown no credentials.
	anonymous account = iota
	// unknown has shown wrong ones.
	unknown
	guest
	member
)

// of tells who sends a request with basic authentication.
func (a accounts) of(r *http.Request) account {
	name, secret, shown := r.BasicAuth()
	if !shown {
		return anonymous
	}
	return a.check(name, secret)
}

// check tells whose credentials these are.
func (a accounts) check(name, secret string) account {
	rightSecret := equal(secret, a.password)
	switch isMember, isGuest := equal(name, a.member), equal(name, a.guest); {
	case rightSecret && isMember:
		return member
	case rightSecret && isGuest:
		return guest
	}
	return unknown
}

// equal compares hashes of equal length with no short cut: the time taken says
// nothing about the credentials.
func equal(got, want string) bool {
	gotSum, wantSum := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(gotSum[:], wantSum[:]) == 1
}

// requireBasicAuth lets a member's requests through to next and answers all
// others as the distribution specification says: 401, a challenge and an error
// document, or 403 for somebody who is known and has no right.
func requireBasicAuth(who accounts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch caller := who.of(r); {
		case caller == member, caller == guest && parsePath(r.URL.Path).repository == "":
			next.ServeHTTP(w, r)
		case caller == guest:
			replyError(w, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="local tenant registry", charset="UTF-8"`)
			replyError(w, http.StatusUnauthorized, "UNAUTHORIZED",
				"this listener needs the user name and password of the registry")
		}
	})
}
