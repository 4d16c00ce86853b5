package registry

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// tokenClient talks to a listener with tokens that has a clock of its own.
type tokenClient struct {
	t       *testing.T
	now     time.Time
	handler http.Handler
}

func newTokenClient(t *testing.T) *tokenClient {
	c := &tokenClient{t: t, now: time.Unix(1_800_000_000, 0)}
	who := accounts{member: testUser, guest: testGuest, password: testPassword}
	c.handler = newTokens(who, func() time.Time { return c.now }).wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	return c
}

func (c *tokenClient) do(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	c.handler.ServeHTTP(answer, r)
	return answer
}

// token asks as a user for scopes.
func (c *tokenClient) token(user string, scopes ...string) string {
	c.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/token?"+url.Values{"scope": scopes}.Encode(), nil)
	if user != "" {
		r.SetBasicAuth(user, testPassword)
	}
	return c.read(c.do(r))
}

func (c *tokenClient) read(answer *httptest.ResponseRecorder) string {
	c.t.Helper()
	var body struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || answer.Code != http.StatusOK {
		c.t.Fatalf("token: %d %s, %v", answer.Code, answer.Body, err)
	}
	if body.Token == "" || body.Token != body.AccessToken || body.ExpiresIn != 300 {
		c.t.Errorf("token: %+v", body)
	}
	return body.Token
}

// pull asks for a manifest and returns the code and the challenge.
func (c *tokenClient) pull(method, repository, token string) (int, string) {
	r := httptest.NewRequest(method, "/v2/"+repository+"/manifests/1", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer := c.do(r)
	return answer.Code, answer.Header().Get("WWW-Authenticate")
}

func TestTokens(t *testing.T) {
	c := newTokenClient(t)
	const image, scope = "localtenant/redis", "repository:localtenant/redis:pull"
	form := url.Values{"grant_type": {"password"}, "username": {testUser}, "password": {testPassword}, "scope": {scope}}
	post := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode()))
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	expired := c.token(testUser, scope)
	c.now = c.now.Add(tokenLife)
	good := c.token(testUser, scope)
	another := newTokenClient(t).token(testUser, scope)
	content, signature, _ := strings.Cut(good, ".")
	for _, test := range []struct {
		name, method, token string
		code                int
		challenge           string
	}{
		{"none", http.MethodGet, "", 401, `scope="repository:localtenant/redis:pull"`},
		{"good", http.MethodGet, good, 204, ""},
		{"good for HEAD", http.MethodHead, good, 204, ""},
		{"by a form", http.MethodGet, c.read(c.do(post)), 204, ""},
		{"several scopes", http.MethodGet, c.token(testUser, "repository:a:push "+scope, "x"), 204, ""},
		{"no push", http.MethodPut, good, 401, "insufficient_scope"},
		{"expired", http.MethodGet, expired, 401, "invalid_token"},
		{"of another registry", http.MethodGet, another, 401, "invalid_token"},
		{"cut", http.MethodGet, content + "." + signature[:5], 401, "invalid_token"},
		{"changed", http.MethodGet, "e30." + signature, 401, "invalid_token"},
		{"no token at all", http.MethodGet, "%%%", 401, "invalid_token"},
		{"for another image", http.MethodGet, c.token(testUser, "repository:localtenant/debian:pull"), 401, "insufficient_scope"},
		{"to push alone", http.MethodGet, c.token(testUser, "repository:localtenant/redis:push"), 401, "insufficient_scope"},
		{"anonymous", http.MethodGet, c.token("", scope), 401, "insufficient_scope"},
		{"guest", http.MethodGet, c.token(testGuest, scope), 401, "insufficient_scope"},
	} {
		code, challenge := c.pull(test.method, image, test.token)
		if code != test.code || !strings.Contains(challenge, test.challenge) || (test.challenge == "") != (challenge == "") {
			t.Errorf("%s: %d %q, want %d %q", test.name, code, challenge, test.code, test.challenge)
		}
	}
}

func TestTokenRequestsThatAreRefused(t *testing.T) {
	c := newTokenClient(t)
	form := func(values string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(values))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
	wrong := httptest.NewRequest(http.MethodGet, "/token", nil)
	wrong.SetBasicAuth(testUser, "wrong")
	for _, test := range []struct {
		request *http.Request
		code    int
	}{
		{wrong, http.StatusUnauthorized},
		{form("grant_type=password&username=puller&password=wrong"), http.StatusUnauthorized},
		{form("grant_type=refresh_token"), http.StatusBadRequest},
		{httptest.NewRequest(http.MethodDelete, "/token", nil), http.StatusMethodNotAllowed},
	} {
		if answer := c.do(test.request); answer.Code != test.code || strings.Contains(answer.Body.String(), `"token"`) {
			t.Errorf("%s: %d %s, want %d", test.request.Method, answer.Code, answer.Body, test.code)
		}
	}
}
