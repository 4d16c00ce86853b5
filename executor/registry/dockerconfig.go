package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// DockerConfig is what a Docker configuration file says of logins.
type DockerConfig struct {
	// Logins are written in the file itself.
	Logins []Login
	// Store is the program that keeps logins to all registries, "" where there
	// is none; Helpers keeps those to single ones, by the name of the login.
	// Both are the ends of the programs' names, after "docker-credential-".
	Store   string
	Helpers map[string]string
	// Unusable are logins that Kubernetes cannot use, by name: the kubelet takes
	// a user with a password and no token.
	Unusable []string
}

// ErrNotDockerConfig is the error of a text that is not a Docker configuration.
// The text may hold passwords, so the error does not show it.
var ErrNotDockerConfig = errors.New(`it is not a Docker configuration: write JSON such as {"auths": {"registry.example.com": {"auth": "BASE64"}}}`)

// errHelperName refuses a helper that is a path: it would choose any program of
// the host.
var errHelperName = errors.New("a credential helper is named by the end of docker-credential-NAME, without a path")

// dockerConfig is the file (github.com/docker/cli, cli/config/configfile).
type dockerConfig struct {
	Auths map[string]struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	} `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

// ParseDockerConfig reads a Docker configuration, as DOCKER_AUTH_CONFIG and
// ~/.docker/config.json have it. An empty text holds no login. Its errors name
// the registry and never show what is written there.
func ParseDockerConfig(text []byte) (DockerConfig, error) {
	if strings.TrimSpace(string(text)) == "" {
		return DockerConfig{}, nil
	}
	var file dockerConfig
	if err := json.Unmarshal(text, &file); err != nil {
		return DockerConfig{}, ErrNotDockerConfig
	}
	var c DockerConfig
	for name, auth := range file.Auths {
		login := Login{Name: name, Username: auth.Username, Password: auth.Password}
		if auth.Auth != "" {
			var err error
			if login.Username, login.Password, err = decodeAuth(auth.Auth); err != nil {
				return DockerConfig{}, fmt.Errorf("the login to %s: %w", name, err)
			}
		}
		switch {
		case login.Username != "":
			c.Logins = append(c.Logins, login)
		case auth.IdentityToken != "" || auth.RegistryToken != "":
			c.Unusable = append(c.Unusable, name)
		}
	}
	slices.SortFunc(c.Logins, func(a, b Login) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(c.Unusable)
	for _, helper := range append([]string{file.CredsStore}, values(file.CredHelpers)...) {
		if helper != "" && helper != filepath.Base(helper) {
			return DockerConfig{}, fmt.Errorf("the credential helper %q: %w", helper, errHelperName)
		}
	}
	c.Store, c.Helpers = file.CredsStore, file.CredHelpers
	return c, nil
}

// errAuth says what "auth" of a login has to be.
var errAuth = errors.New(`"auth" has to be USER:PASSWORD in Base64`)

func decodeAuth(text string) (user, password string, err error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", errAuth
	}
	user, password, found := strings.Cut(string(decoded), ":")
	if !found || user == "" {
		return "", "", errAuth
	}
	return user, strings.Trim(password, "\x00"), nil
}

func values(m map[string]string) []string {
	var all []string
	for _, value := range m {
		all = append(all, value)
	}
	return all
}
