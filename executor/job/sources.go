package job

import (
	"net"
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// SourcesAddress is the HOST:PORT at which the job's repository is fetched, or the
// proxy on the way there; "" where none is, or none is known. The clone URL is the
// runner's, "" for GitLab's own.
func (j Job) SourcesAddress(env Environment, cloneURL string) string {
	switch env.Variable("GIT_STRATEGY") {
	case "none", "empty":
		return ""
	}
	address := j.Git.URL
	if cloneURL != "" {
		address = cloneURL
	}
	at, err := url.Parse(address)
	if err != nil || at.Hostname() == "" {
		return ""
	}
	proxy, err := proxies(env).ProxyFunc()(at)
	if err != nil {
		return "" // whatever it is, git has to make sense of it
	}
	if proxy != nil {
		at = proxy
	}
	return hostPort(at)
}

// proxies are those that git of the job's scripts knows: variables of the job are
// exported to it. As with curl the lower case counts first.
func proxies(env Environment) *httpproxy.Config {
	first := func(names ...string) string {
		for _, name := range names {
			if value := env.Variable(name); value != "" {
				return value
			}
		}
		return ""
	}
	return &httpproxy.Config{
		HTTPProxy:  first("http_proxy", "all_proxy", "ALL_PROXY"),
		HTTPSProxy: first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
		NoProxy:    first("no_proxy", "NO_PROXY"),
	}
}

// hostPort is where a URL leads, "" for one of another kind.
func hostPort(at *url.URL) string {
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ssh": "22", "git": "9418", "socks5": "1080", "socks5h": "1080"}[at.Scheme]
	}
	if port == "" {
		return ""
	}
	return net.JoinHostPort(at.Hostname(), port)
}
