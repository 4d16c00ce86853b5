package registry

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// tokenPath is where the listener with tokens gives them out.
	tokenPath = "/token"
	// tokenService is the name that its challenge has for it.
	tokenService = "local tenant registry"
	// tokenLife is how long a token is good for. Clients take 60 s when
	// nothing is said; a slow pull needs more.
	tokenLife = 5 * time.Minute
)

// tokens is the token authentication of the distribution project
// (https://distribution.github.io/distribution/spec/auth/token/), by which
// Docker Hub and GitLab let clients in: a request without a token is sent to
// the token endpoint with a scope, and comes back with what it got there.
type tokens struct {
	who accounts
	key []byte
	now func() time.Time
}

func newTokens(who accounts, now func() time.Time) *tokens {
	return &tokens{who: who, key: []byte(rand.Text()), now: now}
}

// grant is the content of a token.
type grant struct {
	// Pull are the repositories that may be pulled.
	Pull    []string  `json:"pull"`
	Expires time.Time `json:"expires"`
}

// wrap answers the token endpoint, and through next for requests with a token
// that allows them.
func (t *tokens) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath {
			t.give(w, r)
			return
		}
		text, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		held, valid := t.read(text)
		repository := parsePath(r.URL.Path).repository
		reading := r.Method == http.MethodGet || r.Method == http.MethodHead
		if valid && reading && (repository == "" || slices.Contains(held.Pull, repository)) {
			next.ServeHTTP(w, r)
			return
		}
		challenge := fmt.Sprintf(`Bearer realm="http://%s%s",service=%q`, r.Host, tokenPath, tokenService)
		if repository != "" {
			challenge += fmt.Sprintf(`,scope="repository:%s:pull"`, repository)
		}
		// What is wrong with a token that was shown, in words that clients
		// decide on (RFC 6750, 3.1).
		switch {
		case shown && valid:
			challenge += `,error="insufficient_scope"`
		case shown:
			challenge += `,error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		replyError(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	})
}

// give answers a request for a token. Credentials come as basic authentication
// or, by POST, as a form (the OAuth 2 way, which containerd tries first).
// Without credentials there is a token too, one that allows nothing: a public
// registry does not know yet that the repository will not be a public one.
func (t *tokens) give(w http.ResponseWriter, r *http.Request) {
	caller := t.who.of(r)
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		if r.PostFormValue("grant_type") != "password" {
			replyError(w, http.StatusBadRequest, "UNSUPPORTED", "the only grant_type is password")
			return
		}
		caller = t.who.check(r.PostFormValue("username"), r.PostFormValue("password"))
	default:
		replyError(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "ask for a token with GET or POST")
		return
	}
	if caller == unknown {
		replyError(w, http.StatusUnauthorized, "UNAUTHORIZED", "incorrect username or password")
		return
	}
	given := grant{Expires: t.now().Add(tokenLife)}
	if caller == member {
		given.Pull = wanted(r.Form["scope"], r.URL.Query()["scope"])
	}
	token := t.write(given)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token": token, "access_token": token, "expires_in": int(tokenLife.Seconds()), "issued_at": t.now().UTC().Format(time.RFC3339),
	})
}

// wanted are the repositories that scopes like repository:NAME:pull,push ask
// to pull. One parameter may hold several scopes with spaces between them.
func wanted(parameters ...[]string) []string {
	var names []string
	for scope := range strings.FieldsSeq(strings.Join(slices.Concat(parameters...), " ")) {
		rest, found := strings.CutPrefix(scope, "repository:")
		end := strings.LastIndex(rest, ":")
		if !found || end < 0 || !slices.Contains(strings.Split(rest[end+1:], ","), "pull") {
			continue
		}
		names = append(names, rest[:end])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// write signs a grant, so that nothing has to be remembered of it.
func (t *tokens) write(g grant) string {
	// Strings and a time of this century always have a JSON form.
	text, _ := json.Marshal(g)
	encoding := base64.RawURLEncoding
	return encoding.EncodeToString(text) + "." + encoding.EncodeToString(t.sign(text))
}

// read returns the grant of a token that is ours and not too old.
func (t *tokens) read(token string) (grant, bool) {
	content, signature, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(content)
	if err != nil {
		return grant{}, false
	}
	signed, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(signed, t.sign(text)) {
		return grant{}, false
	}
	var held grant
	if err := json.Unmarshal(text, &held); err != nil {
		return grant{}, false
	}
	return held, t.now().Before(held.Expires)
}

func (t *tokens) sign(text []byte) []byte {
	sum := hmac.New(sha256.New, t.key)
	sum.Write(text)
	return sum.Sum(nil)
}
