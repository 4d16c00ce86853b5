package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

func TestPullPolicyAloneOrAsAList(t *testing.T) {
	for text, want := range map[string]settings.List{
		"":                        nil,
		`pull_policy = "always"`:  {"always"},
		`pull_policy = ["never"]`: {"never"},
		`pull_policy = ""`:        {""},
		`pull_policy = ["always", "if-not-present"]`: {"always", "if-not-present"},
	} {
		s, err := settings.Parse("f", []byte(minimal+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, s.Kubernetes.PullPolicy); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestImagesRefused(t *testing.T) {
	for text, want := range map[string]string{
		`pull_policy = ["always", "Never"]`:                             `kubernetes.pull_policy is "Never": use one of always, if-not-present, never`,
		`pull_policy = 1`:                                               `kubernetes.pull_policy is "1"`,
		`allowed_pull_policies = ["sometimes"]`:                         "kubernetes.allowed_pull_policies",
		"pull_policy = \"never\"\nallowed_pull_policies = [\"always\"]": "kubernetes.allowed_pull_policies (always) has nothing of kubernetes.pull_policy (never)",
		`allowed_images = ["a", "[b"]`:                                  `kubernetes.allowed_images has the pattern "[b"`,
		`allowed_services = ["{b"]`:                                     "kubernetes.allowed_services",
		`allowed_users = ["root"]`:                                      `kubernetes.allowed_users has "root"`,
		`allowed_groups = ["-1"]`:                                       "kubernetes.allowed_groups",
	} {
		if _, err := settings.Parse("f", []byte(minimal+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	// The helper image is GitLab's own where none is named.
	if _, err := settings.Parse("f", []byte(strings.Replace(minimal, `helper_image = "helper:1"`, "", 1))); err != nil {
		t.Error(err)
	}
}
