package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Pull policies under the names that GitLab gives them.
const (
	PullAlways       = "always"
	PullIfNotPresent = "if-not-present"
	PullNever        = "never"
)

// Images are the images of the Pod and how they are pulled.
type Images struct {
	Image            string   `toml:"image" example:"debian:12" doc:"Image of jobs that name none. Without it such jobs fail."`
	HelperImage      string   `toml:"helper_image" example:"registry.example.com/gitlab-org/gitlab-runner-helper:x86_64-v19.4.0" doc:"Image with git and gitlab-runner-helper, of the runner's version. Required."`
	PullPolicy       string   `toml:"pull_policy" example:"if-not-present" doc:"always, if-not-present or never, for every image of the Pod. Without it the cluster decides."`
	ImagePullSecrets []string `toml:"image_pull_secrets" example:"registry-login" doc:"Names of Secrets in the namespace with registry logins."`
}

func (i Images) check() []error {
	var all []error
	if i.HelperImage == "" {
		all = append(all, errors.New("kubernetes.helper_image is not set: name GitLab's gitlab-runner-helper image of the runner's version"))
	}
	policies := []string{PullAlways, PullIfNotPresent, PullNever}
	if i.PullPolicy != "" && !slices.Contains(policies, i.PullPolicy) {
		all = append(all, fmt.Errorf("kubernetes.pull_policy is %q: use one of %s", i.PullPolicy, strings.Join(policies, ", ")))
	}
	return all
}
