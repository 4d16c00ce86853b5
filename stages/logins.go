package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/registry"
	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

// authVariable is the job variable with logins to registries.
const authVariable = "DOCKER_AUTH_CONFIG"

// logins are the registry logins that the images need, from the sources of the
// kubernetes executor and in its order: the job's variable, the Docker
// configuration of the runner's user, and what GitLab gives to the job
// (helpers/docker/auth/auth.go, AllConfigs). A source that cannot be read is
// left out with a warning, which never shows what stands in it.
func (d *Driver) logins(ctx context.Context, images []string) registry.Logins {
	if d.settings.Kubernetes.UseServiceAccountImagePullSecrets {
		return nil
	}
	var all registry.Logins
	source := loginSource{images: images, environ: withoutJob(d.variables), warn: d.log.Warn}
	all = all.Add(source.read(ctx, authVariable, []byte(d.variables.Variable(authVariable)))...)
	if file, text := source.dockerFile(d.variables["HOME"]); file != "" {
		all = all.Add(source.read(ctx, file, text)...)
	}
	for _, c := range d.job.Credentials {
		if c.Type == job.CredentialRegistry {
			all = all.Add(registry.Login{Name: c.URL, Username: c.Username, Password: c.Password})
		}
	}
	return all.For(images)
}

// withoutJob is the environment that programs of the host get: none of the
// job's variables, which they could mistake for their own settings.
func withoutJob(env job.Environment) []string {
	var kept []string
	for name, value := range env {
		if !strings.HasPrefix(name, "CUSTOM_ENV_") {
			kept = append(kept, name+"="+value)
		}
	}
	slices.Sort(kept)
	return kept
}

// loginSource reads Docker configurations.
type loginSource struct {
	images  []string
	environ []string
	warn    func(format string, args ...any)
}

// dockerFile is the Docker configuration of the user whose home it is; "" where
// there is none.
func (s loginSource) dockerFile(home string) (string, []byte) {
	if home == "" {
		self, err := user.Current()
		if err != nil {
			return "", nil
		}
		home = self.HomeDir
	}
	for _, file := range []string{filepath.Join(home, ".docker", "config.json"), filepath.Join(home, ".dockercfg")} {
		text, err := os.ReadFile(file)
		switch {
		case err == nil:
			return file, text
		case !errors.Is(err, fs.ErrNotExist):
			s.warn("No registry login is taken from %s: %v", file, err)
			return "", nil
		}
	}
	return "", nil
}

// read are the logins of a Docker configuration that the images may need: those
// written in it, those of its store in their place, and those of its helpers in
// the place of both.
func (s loginSource) read(ctx context.Context, name string, text []byte) []registry.Login {
	config, err := registry.ParseDockerConfig(text)
	if err != nil {
		s.warn("No registry login is taken from %s: %v", name, err)
		return nil
	}
	for _, unusable := range config.Unusable {
		if registry.CoversAny(unusable, s.images) {
			s.warn("The login to %s in %s is a token, which Kubernetes cannot use: it needs a user and a password", unusable, name)
		}
	}
	found := map[string]registry.Login{}
	for _, login := range config.Logins {
		found[login.Name] = login
	}
	for server, helper := range s.servers(ctx, name, config) {
		switch login, err := s.ask(ctx, helper, server); {
		case err != nil:
			s.warn("No login to %s is taken from %s: %v", server, name, err)
		case login.Username != "":
			found[server] = login
		}
	}
	var all []registry.Login
	for _, login := range found {
		all = append(all, login)
	}
	slices.SortFunc(all, func(a, b registry.Login) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// servers are the registries whose logins a program keeps, as far as the images
// need them, each with the program's name.
func (s loginSource) servers(ctx context.Context, name string, config registry.DockerConfig) map[string]string {
	servers := map[string]string{}
	if config.Store != "" {
		var listed map[string]string
		text, err := s.helper(ctx, config.Store, "list", "")
		if err == nil && json.Unmarshal(text, &listed) != nil {
			err = errHelperAnswer
		}
		if err != nil {
			s.warn("No registry login is taken from the store of %s: docker-credential-%s: %v", name, config.Store, err)
		}
		for server := range listed {
			servers[server] = config.Store
		}
	}
	for server, helper := range config.Helpers {
		servers[server] = helper
	}
	for server := range servers {
		if !registry.CoversAny(server, s.images) {
			delete(servers, server)
		}
	}
	return servers
}

// Errors of a credential helper. What it printed may hold a password.
var (
	errHelperAnswer = errors.New("its answer is not what a credential helper says")
	errHelperToken  = errors.New("it has a token, which Kubernetes cannot use: it needs a user and a password")
)

// tokenUser is the user of a login that is a token.
const tokenUser = "<token>"

// ask asks a credential helper for the login to a registry. A login without
// user means that it has none.
func (s loginSource) ask(ctx context.Context, helper, server string) (registry.Login, error) {
	text, err := s.helper(ctx, helper, "get", server)
	if err != nil {
		return registry.Login{}, fmt.Errorf("docker-credential-%s: %w", helper, err)
	}
	var answer struct{ Username, Secret string }
	switch err := json.Unmarshal(text, &answer); {
	case len(text) == 0:
		return registry.Login{}, nil
	case err != nil:
		return registry.Login{}, fmt.Errorf("docker-credential-%s: %w", helper, errHelperAnswer)
	case answer.Username == tokenUser:
		return registry.Login{}, fmt.Errorf("docker-credential-%s: %w", helper, errHelperToken)
	}
	return registry.Login{Name: server, Username: answer.Username, Password: answer.Secret}, nil
}

// helperLimit is how long a credential helper may take: some ask a cloud.
const helperLimit = 30 * time.Second

// helperNotFound is what helpers print for a registry that they do not know.
const helperNotFound = "credentials not found"

// helper runs a credential helper, one of the programs docker-credential-NAME
// on PATH, by its protocol (github.com/docker/docker-credential-helpers).
func (s loginSource) helper(ctx context.Context, name, verb, input string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, helperLimit)
	defer cancel()
	program := bounded.Program{Path: "docker-credential-" + name, Args: []string{verb}, Env: s.environ, Stdin: input}
	out, err := program.Run(ctx)
	out = bytes.TrimSpace(out)
	var ended *bounded.EndError
	switch {
	case err == nil:
		return out, nil
	case strings.Contains(string(out), helperNotFound):
		return nil, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("it did not answer within %s", helperLimit)
	case errors.As(err, &ended):
		return nil, fmt.Errorf("it ended with %w", ended.Err)
	}
	return nil, err
}
