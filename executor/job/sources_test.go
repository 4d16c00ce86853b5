package job_test

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

func TestSourcesAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url, clone string
		variables  map[string]string
		want       string
	}{
		"https":                     {url: "https://gitlab.example.com/g/p.git", want: "gitlab.example.com:443"},
		"http with a port":          {url: "http://gitlab.example.com:8080/g/p.git", want: "gitlab.example.com:8080"},
		"an IPv6 address":           {url: "http://[fd00::1]/g/p.git", want: "[fd00::1]:80"},
		"ssh":                       {url: "ssh://git@gitlab.example.com/g/p.git", want: "gitlab.example.com:22"},
		"the runner's clone_url":    {url: "https://gitlab.example.com/g/p.git", clone: "http://inner:81", want: "inner:81"},
		"no sources":                {url: "https://gitlab.example.com/g/p.git", variables: map[string]string{"GIT_STRATEGY": "none"}},
		"an empty folder":           {url: "https://gitlab.example.com/g/p.git", variables: map[string]string{"GIT_STRATEGY": "empty"}},
		"a clone":                   {url: "https://gitlab.example.com/g/p.git", variables: map[string]string{"GIT_STRATEGY": "clone"}, want: "gitlab.example.com:443"},
		"a proxy":                   {url: "https://gitlab.example.com/g/p.git", variables: map[string]string{"HTTPS_PROXY": "http://proxy:3128"}, want: "proxy:3128"},
		"the proxy of another kind": {url: "https://gitlab.example.com/g/p.git", variables: map[string]string{"http_proxy": "http://proxy:3128"}, want: "gitlab.example.com:443"},
		"a proxy for all":           {url: "http://gitlab.example.com/g/p.git", variables: map[string]string{"all_proxy": "socks5://proxy"}, want: "proxy:1080"},
		"no proxy for this host":    {url: "https://gitlab.example.com/g/p.git", variables: map[string]string{"https_proxy": "http://proxy:3128", "no_proxy": ".example.com"}, want: "gitlab.example.com:443"},
		"a folder":                  {url: "/srv/p.git"},
		"a kind that nobody knows":  {url: "x://gitlab.example.com/g/p.git"},
		"none":                      {},
	} {
		env := job.Environment{}
		for variable, value := range c.variables {
			env["CUSTOM_ENV_"+variable] = value
		}
		if got := (job.Job{Git: job.Git{URL: c.url}}).SourcesAddress(env, c.clone); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
