package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Pull policies under the names that GitLab gives them.
const (
	PullAlways       = "always"
	PullIfNotPresent = "if-not-present"
	PullNever        = "never"
)

// Images are the images of the Pod and how they are pulled.
type Images struct {
	Image           string   `toml:"image" example:"debian:12" doc:"Image of jobs that name none. Without it such jobs fail. Job variables in it are expanded."`
	AllowedImages   []string `toml:"allowed_images" example:"registry.example.com/**,debian:*" doc:"Patterns of images that jobs may name: * stands for any text without a slash, ** for any text. The image of this file is always allowed. Without it every image is." parity:"A refused job ends as script_failure: a driver cannot name runner_configuration_error."`
	AllowedServices []string `toml:"allowed_services" example:"registry.example.com/services/*" doc:"As allowed_images, for services." parity:"A refused job ends as script_failure: a driver cannot name runner_configuration_error."`

	HelperImage                 string `toml:"helper_image" example:"registry.example.com/gitlab-runner-helper:x86_64-v19.4.0" doc:"Image with git and gitlab-runner-helper, of the runner's version. Job variables in it are expanded. Without it the image is GitLab's own, of the runner's version, for the architecture that node_selector names (kubernetes.io/arch) or else amd64."`
	HelperImageFlavor           string `toml:"helper_image_flavor" default:"alpine" doc:"Kind of GitLab's helper image: alpine, alpine3.21, ubuntu and others. Without effect where helper_image is set."`
	HelperImageAutosetArchAndOS bool   `toml:"helper_image_autoset_arch_and_os" default:"false" doc:"Take GitLab's helper image for the architecture of the runner's host instead of amd64, where node_selector names none." parity:"The operating system is always linux."`

	PullPolicy          List     `toml:"pull_policy" example:"always,if-not-present" doc:"always, if-not-present or never, for every image of the Pod; or a list of them. Where an image cannot be pulled by the first, the Pod is made anew with the next. Without it the cluster decides." parity:"The next policy is tried in prepare, before the first script."`
	AllowedPullPolicies []string `toml:"allowed_pull_policies" example:"always,if-not-present" doc:"Pull policies that jobs may name. Without it those of pull_policy." parity:"A refused job ends as script_failure. Where pull_policy is not set these are the policies; the kubernetes executor fails every job then."`

	ImagePullSecrets                  []string `toml:"image_pull_secrets" example:"registry-login" doc:"Names of Secrets in the namespace with registry logins." parity:"Logins of the job and of the runner's user are added as far as the images need them; tokens, which Kubernetes cannot use, are named in the log."`
	UseServiceAccountImagePullSecrets bool     `toml:"use_service_account_image_pull_secrets" default:"false" doc:"Leave logins to the service account of the Pod: neither image_pull_secrets nor logins of the job or the runner's user are used."`

	AllowedUsers  []string `toml:"allowed_users" example:"1000,65534" doc:"User ids that jobs may name with image:kubernetes:user. Without it all but 0, which has to be listed."`
	AllowedGroups []string `toml:"allowed_groups" example:"1000" doc:"As allowed_users, for group ids."`
}

func (i Images) check() []error {
	var all []error
	all = append(all, checkPolicies("kubernetes.pull_policy", i.PullPolicy)...)
	all = append(all, checkPolicies("kubernetes.allowed_pull_policies", i.AllowedPullPolicies)...)
	all = append(all, checkPatterns("kubernetes.allowed_images", i.AllowedImages)...)
	all = append(all, checkPatterns("kubernetes.allowed_services", i.AllowedServices)...)
	all = append(all, checkIDs("kubernetes.allowed_users", i.AllowedUsers)...)
	all = append(all, checkIDs("kubernetes.allowed_groups", i.AllowedGroups)...)
	if err := i.checkAllowed(); err != nil {
		all = append(all, err)
	}
	return all
}

// checkAllowed refuses a pull_policy of which nothing is left: every job that
// names none of its own would fail.
func (i Images) checkAllowed() error {
	if len(i.PullPolicy) == 0 || len(i.AllowedPullPolicies) == 0 {
		return nil
	}
	if slices.ContainsFunc(i.PullPolicy, func(p string) bool { return slices.Contains(i.AllowedPullPolicies, p) }) {
		return nil
	}
	return fmt.Errorf("kubernetes.allowed_pull_policies (%s) has nothing of kubernetes.pull_policy (%s)",
		strings.Join(i.AllowedPullPolicies, ", "), strings.Join(i.PullPolicy, ", "))
}

func checkPolicies(key string, names []string) []error {
	var all []error
	known := []string{PullAlways, PullIfNotPresent, PullNever}
	for _, name := range names {
		// "" is what the cluster decides, as in the kubernetes executor
		// (common/config.go:597).
		if name != "" && !slices.Contains(known, name) {
			all = append(all, fmt.Errorf("%s is %q: use one of %s", key, name, strings.Join(known, ", ")))
		}
	}
	return all
}

func checkPatterns(key string, patterns []string) []error {
	var all []error
	for _, pattern := range patterns {
		if !doublestar.ValidatePattern(pattern) {
			all = append(all, fmt.Errorf("%s has the pattern %q, which matches nothing: a bracket or brace in it is not closed", key, pattern))
		}
	}
	return all
}

func checkIDs(key string, ids []string) []error {
	var all []error
	for _, id := range ids {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n < 0 {
			all = append(all, fmt.Errorf("%s has %q: write a number, such as 1000; names are known inside the image alone", key, id))
		}
	}
	return all
}
