package main_test

import (
	"strings"
	"testing"
	"time"
)

// A node that has just joined is asked whether the job's repository can be reached
// from it; one that is known is not asked. What cannot be reached is no failure.
func TestSourcesOfAFreshNode(t *testing.T) {
	t.Parallel()
	const asks, unresolved = "podagent reach ", "its name is not resolved"
	for _, c := range []struct {
		name, url, strategy string
		fresh               bool
		asked               int
		says                string
	}{
		{"reached", "http://127.0.0.1:1/g/p.git", "", true, 1, ""},
		{"an old node", "http://127.0.0.1:1/g/p.git", "", false, 0, ""},
		{"no sources", "http://127.0.0.1:1/g/p.git", "none", true, 0, ""},
		{"not reached", "http://nowhere.invalid/g/p.git", "", true, 1,
			"WARNING: nowhere.invalid:80, from where the job's repository is fetched, is not reached from the job's Pod: " + unresolved},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.play()
			if c.says != "" {
				h.settings["wait.reach"] = "20s" // it is waited for to the end, and a busy machine is slow to begin
			}
			h.job["git_info"] = map[string]any{"repo_url": c.url, "ref": "main", "sha": "3f477c1c"}
			h.env["CUSTOM_ENV_GIT_STRATEGY"] = c.strategy
			if c.fresh {
				h.server.Joined(node, time.Now())
			}
			got := h.stage("prepare")
			asked := 0
			for _, e := range h.server.Execs() {
				if strings.Contains(strings.Join(e.Args, " "), asks) {
					asked++
				}
			}
			if got.code != 0 || c.says == "" && asked != c.asked || asked < c.asked || !strings.Contains(h.plain(got.stdout), c.says) {
				t.Errorf("ended with %d, asked %d times, want %d and %q:\n%s", got.code, asked, c.asked, c.says, h.plain(got.stdout))
			}
			if c.says == "" {
				return
			}
			// Where it was waited for in vain, the next job looks once.
			h.job["id"] = 4712
			again := h.stage("prepare")
			more := 0
			for _, e := range h.server.Execs() {
				if strings.Contains(strings.Join(e.Args, " "), asks) {
					more++
				}
			}
			if again.code != 0 || more != asked+1 {
				t.Errorf("the next job ended with %d and asked %d times, want once:\n%s", again.code, more-asked, h.plain(again.stdout))
			}
		})
	}
}
