package registry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/registry"
)

func TestPlaces(t *testing.T) {
	for name, want := range map[string]registry.Place{
		"registry.example.com":             "registry.example.com",
		"Registry.Example.com:5000":        "registry.example.com:5000",
		"registry.example.com/Group/app":   "registry.example.com/Group/app",
		"registry.example.com/group/app:1": "registry.example.com/group/app",
		"registry.example.com/":            "registry.example.com",
		"https://index.docker.io/v1/":      "docker.io",
		"HTTP://Registry.example.com/v2/":  "registry.example.com",
		"index.docker.io":                  "docker.io",
	} {
		if got := registry.PlaceOf(name); got != want {
			t.Errorf("login %s is for %s, want %s", name, got, want)
		}
	}
	for image, want := range map[string]registry.Place{
		"debian:12":                                "docker.io/debian",
		"group/app":                                "docker.io/group/app",
		"docker.io/group/app:1":                    "docker.io/group/app",
		"index.docker.io/group/app":                "docker.io/group/app",
		"localhost/app:1":                          "localhost/app",
		"registry:5000/app:1":                      "registry:5000/app",
		"Registry.example.com/app@sha256:abc":      "registry.example.com/app",
		"registry.example.com/app:1@sha256:abc":    "registry.example.com/app",
		"registry.example.com:5000/group/app/sub":  "registry.example.com:5000/group/app/sub",
		"registry.example.com:5000/app:v1.2.3-rc1": "registry.example.com:5000/app",
	} {
		if got := registry.RepositoryOf(image); got != want {
			t.Errorf("image %s is in %s, want %s", image, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		login, image string
		want         bool
	}{
		{"registry.example.com", "registry.example.com/a/b:1", true},
		{"registry.example.com", "registry.example.com:5000/a/b:1", false},
		{"registry.example.com", "evil-registry.example.com/a", false},
		{"registry.example.com/a", "registry.example.com/a/b:1", true},
		{"registry.example.com/a/b", "registry.example.com/a/b:1", true},
		{"registry.example.com/a", "registry.example.com/ab:1", false},
		{"*.example.com", "registry.example.com/a", true},
		{"*.example.com", "a.registry.example.com/a", false},
		{"[", "registry.example.com/a", false},
		{"https://index.docker.io/v1/", "debian", true},
		{"https://index.docker.io/v1/", "quay.io/debian", false},
		{"docker.io/group", "group/app", true},
		{"", "debian", false},
	} {
		if got := registry.CoversAny(test.login, []string{"other.example.org/x", test.image}); got != test.want {
			t.Errorf("a login to %q for image %s: %v, want %v", test.login, test.image, got, test.want)
		}
	}
}

const canary = "canary-6613"

func TestParseDockerConfig(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       registry.DockerConfig
	}{
		{"nothing", " \n", registry.DockerConfig{}},
		{"no logins", `{"auths": {}, "HttpHeaders": {"a": "b"}}`, registry.DockerConfig{}},
		{"both ways", `{"auths": {"b": {"auth": "dTpwOnc="}, "a": {"username": "u", "password": "p"}}}`,
			registry.DockerConfig{Logins: []registry.Login{{Name: "a", Username: "u", Password: "p"}, {Name: "b", Username: "u", Password: "p:w"}}}},
		{"kept elsewhere", `{"auths": {"a": {}}, "credsStore": "s", "credHelpers": {"r": "h"}}`,
			registry.DockerConfig{Store: "s", Helpers: map[string]string{"r": "h"}}},
		{"tokens", `{"auths": {"b": {"registrytoken": "t"}, "a": {"identitytoken": "t"}}}`, registry.DockerConfig{Unusable: []string{"a", "b"}}},
	} {
		got, err := registry.ParseDockerConfig([]byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	for name, text := range map[string]string{
		"not JSON":         canary,
		"cut off":          `{"auths": {"a": {"auth": "` + canary,
		"wrong kind":       `{"auths": ["` + canary + `"]}`,
		"not Base64":       `{"auths": {"a": {"auth": "` + canary + `%"}}}`,
		"no password":      `{"auths": {"a": {"auth": "dXNlcg=="}}}`,
		"helper is a path": `{"auths": {"a": {"auth": "dTpw"}}, "credHelpers": {"r": "../sh"}}`,
		"store is a path":  `{"credsStore": "/bin/sh"}`,
	} {
		got, err := registry.ParseDockerConfig([]byte(text))
		switch {
		case err == nil:
			t.Errorf("%s: got %+v, want an error", name, got)
		case strings.Contains(err.Error(), canary):
			t.Errorf("%s: the error shows what is written there: %v", name, err)
		}
	}
}

// Of two logins for one registry the first source's counts, however they are
// written.
func TestOrderOfLogins(t *testing.T) {
	logins := registry.Logins{}.
		Add(registry.Login{Name: "https://Registry.example.com/v1/", Username: "first"}).
		Add(registry.Login{Name: "registry.example.com", Username: "second"}, registry.Login{Name: "registry.example.com/group", Username: "path"}).
		Add(registry.Login{Name: "index.docker.io", Username: "hub", Password: "p"}, registry.Login{Name: "unused.example.com", Username: "unused"})
	text, err := logins.For([]string{"registry.example.com/group/app:1", "debian"}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Auths map[string]struct{ Username, Password, Auth string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	users := map[string]string{}
	for name, entry := range got.Auths {
		users[name] = entry.Username
	}
	want := map[string]string{"registry.example.com": "first", "registry.example.com/group": "path", "https://index.docker.io/v1/": "hub"}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Errorf("logins (-want +got):\n%s", diff)
	}
	if auth := got.Auths["https://index.docker.io/v1/"].Auth; auth != "aHViOnA=" {
		t.Errorf("auth %q is not hub:p in Base64", auth)
	}
}

func TestLoginsDoNotPrintPasswords(t *testing.T) {
	logins := registry.Logins{{Name: "a", Username: "u", Password: canary}}
	if text := fmt.Sprintf("%v %+v %#v %s", logins, logins[0], logins, logins[0]); strings.Contains(text, canary) {
		t.Error(text)
	}
}
