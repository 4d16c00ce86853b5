package registry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	testUser     = "puller"
	testPassword = "open sesame"
	testGuest    = "guest"
)

// start runs a registry on loopback for one test.
func start(t *testing.T, change func(*Options)) *Server {
	t.Helper()
	opts := Options{Address: "127.0.0.1", Store: t.TempDir(), Username: testUser, Password: testPassword, Guest: testGuest}
	if change != nil {
		change(&opts)
	}
	server, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return server
}

func push(t *testing.T, addr string, img v1.Image) {
	t.Helper()
	if err := remote.Write(tag(t, addr), img); err != nil {
		t.Fatal(err)
	}
}

func tag(t *testing.T, addr string) name.Tag {
	t.Helper()
	ref, err := name.NewTag(addr+"/localtenant/sample:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func sample(t *testing.T) v1.Image {
	t.Helper()
	img, err := random.Image(4096, 2)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// noRetry keeps a test of failures from waiting for the client's back-off.
var noRetry = []remote.Option{remote.WithRetryPredicate(func(error) bool { return false }), remote.WithRetryStatusCodes()}

func TestListenersServeTheSameImage(t *testing.T) {
	server := start(t, nil)
	img := sample(t)
	push(t, server.PlainAddr(), img)

	for _, c := range []struct {
		name, addr string
		auth       authn.Authenticator
	}{
		{"plain", server.PlainAddr(), authn.Anonymous},
		{"auth", server.AuthAddr(), &authn.Basic{Username: testUser, Password: testPassword}},
		{"token", server.TokenAddr(), &authn.Basic{Username: testUser, Password: testPassword}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := remote.Image(tag(t, c.addr), remote.WithAuth(c.auth))
			if err != nil {
				t.Fatal(err)
			}
			wantDigest, _ := img.Digest()
			if digest, err := got.Digest(); err != nil || digest != wantDigest {
				t.Errorf("digest = %v, %v, want %v", digest, err, wantDigest)
			}
			layers, err := got.Layers()
			if err != nil {
				t.Fatal(err)
			}
			for i, layer := range layers {
				rc, err := layer.Compressed()
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, rc); err != nil || n == 0 {
					t.Errorf("layer %d: %d bytes, %v", i, n, err)
				}
				_ = rc.Close()
			}
		})
	}
}

func TestLoginIsRefused(t *testing.T) {
	server := start(t, nil)
	push(t, server.PlainAddr(), sample(t))
	for _, c := range []struct {
		name        string
		auth        authn.Authenticator
		basic       int
		basicText   string
		token       int
		tokenAnswer string
	}{
		{"nobody", authn.Anonymous, 401, "UNAUTHORIZED", 401, "authentication required"},
		{"wrong password", &authn.Basic{Username: testUser, Password: "open"}, 401, "UNAUTHORIZED", 401, "incorrect username or password"},
		{"wrong user", &authn.Basic{Username: "somebody", Password: testPassword}, 401, "UNAUTHORIZED", 401, "incorrect username or password"},
		{"no password", &authn.Basic{Username: testUser}, 401, "UNAUTHORIZED", 401, "authentication required"},
		{"guest", &authn.Basic{Username: testGuest, Password: testPassword}, 403, "DENIED", 401, "authentication required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, listener := range []struct {
				addr string
				code int
				text string
			}{{server.AuthAddr(), c.basic, c.basicText}, {server.TokenAddr(), c.token, c.tokenAnswer}} {
				_, err := remote.Image(tag(t, listener.addr), append(noRetry, remote.WithAuth(c.auth))...)
				var answer *transport.Error
				if !errors.As(err, &answer) || answer.StatusCode != listener.code || !strings.Contains(err.Error(), listener.text) {
					t.Errorf("pull = %v, want a %d with %q", err, listener.code, listener.text)
				}
			}
		})
	}
}

func TestChallenge(t *testing.T) {
	server := start(t, nil)
	for addr, want := range map[string]string{
		server.AuthAddr():  `Basic realm="local tenant registry", charset="UTF-8"`,
		server.TokenAddr(): `Bearer realm="http://` + server.TokenAddr() + `/token",service="local tenant registry"`,
	} {
		resp, err := http.Get("http://" + addr + "/v2/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if challenge := resp.Header.Get("WWW-Authenticate"); challenge != want || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%d, WWW-Authenticate = %q, want a 401 with %q", resp.StatusCode, challenge, want)
		}
	}
}

// lineLog collects the request log and lets a test wait for a line: a line is
// written after its answer has been sent.
type lineLog struct {
	mu    sync.Mutex
	grown *sync.Cond
	text  strings.Builder
}

func newLineLog() *lineLog {
	l := &lineLog{}
	l.grown = sync.NewCond(&l.mu)
	return l
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grown.Broadcast()
	return l.text.Write(p)
}

// waitFor returns the log once it contains want.
func (l *lineLog) waitFor(want string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !strings.Contains(l.text.String(), want) {
		l.grown.Wait()
	}
	return l.text.String()
}

func TestLogHasRequestsAndNoSecrets(t *testing.T) {
	out := newLineLog()
	server := start(t, func(o *Options) { o.Log = out })
	push(t, server.PlainAddr(), sample(t))
	if _, err := remote.Image(tag(t, server.AuthAddr()), remote.WithAuth(&authn.Basic{Username: testUser, Password: testPassword})); err != nil {
		t.Fatal(err)
	}
	var text string
	for _, want := range []string{"plain GET /v2/ 200", "auth GET /v2/ 401", "plain PUT /v2/localtenant/sample/manifests/1 201", "auth GET /v2/localtenant/sample/manifests/1 200"} {
		text = out.waitFor(want)
	}
	if strings.Contains(text, testPassword) || strings.Contains(text, "Basic") {
		t.Errorf("log shows credentials:\n%s", text)
	}
}

func TestStoreIsUsedAgain(t *testing.T) {
	store := t.TempDir()
	img := sample(t)
	first := start(t, func(o *Options) { o.Store = store })
	push(t, first.PlainAddr(), img)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := start(t, func(o *Options) { o.Store = store })
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := layers[0].Digest()
	resp, err := http.Head("http://" + second.PlainAddr() + "/v2/localtenant/sample/blobs/" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("blob in the second registry: %s, want 200", resp.Status)
	}
}

func TestContextEndsServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server, err := Start(ctx, Options{Address: "127.0.0.1", Store: t.TempDir(), Username: testUser, Password: testPassword, Guest: testGuest})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, addr := range []string{server.PlainAddr(), server.AuthAddr(), server.TokenAddr()} {
		for refused := false; !refused; { // ends when the listener is closed
			conn, err := net.Dial("tcp", addr)
			if refused = err != nil; !refused {
				_ = conn.Close()
			}
		}
	}
	if err := server.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	good := Options{Address: "127.0.0.1", Store: t.TempDir(), Username: "u", Password: "p", Guest: "g"}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no address", func(o *Options) { o.Address = "" }, "not an IP address"},
		{"host name", func(o *Options) { o.Address = "localhost" }, "not an IP address"},
		{"foreign address", func(o *Options) { o.Address = "192.0.2.1" }, "open a listener of the registry"},
		{"no store", func(o *Options) { o.Store = "" }, "no folder"},
		{"store is a file", func(o *Options) { o.Store = "server.go" }, "store"},
		{"no user", func(o *Options) { o.Username = "" }, "user name"},
		{"no password", func(o *Options) { o.Password = "" }, "password"},
		{"no guest", func(o *Options) { o.Guest = "" }, "guest"},
		{"guest is the user", func(o *Options) { o.Guest = o.Username }, "guest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := good
			c.change(&opts)
			server, err := Start(t.Context(), opts)
			if err == nil {
				_ = server.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not contain %q", err, c.want)
			}
		})
	}
}
