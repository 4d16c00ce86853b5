package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A user without a home of its own gets one, and a place for temporary files;
// one that has them keeps them.
func TestHomeAndTemp(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become other users")
	}
	path := program(t)
	own := filepath.Join(public(t), "own")
	if err := os.Mkdir(own, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, home, temp, wantHome, wantTemp string }{
		{"neither", "/nosuch", "/nosuch", "ROOT/home-1234", "ROOT/tmp-1234"},
		{"root's", "/proc/1", "/proc/1", "ROOT/home-1234", "ROOT/tmp-1234"},
		{"own", own, own, own, own},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("HOME", test.home)
			t.Setenv("TMPDIR", "/tmp")
			root := filepath.Join(public(t), "build")
			t.Setenv("TMPDIR", test.temp)
			script := `echo "$HOME $TMPDIR"; echo x >"$HOME/x" && echo y >"$TMPDIR/y"`
			// Twice: the second stage finds the folders of the first.
			for _, stage := range []string{"one", "two"} {
				got, status := runAs(t, path, root, stage, script, 1234, "077")
				want := strings.ReplaceAll(test.wantHome+" "+test.wantTemp+"\n", "ROOT", root)
				if got != want || status.Exit != 0 {
					t.Errorf("stage %s: %q, exit %d; want %q", stage, got, status.Exit, want)
				}
			}
		})
	}
}

// git works in a repository that another user has made, unless the image says
// something of its own about git.
func TestGitInAnothersFolder(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become other users")
	}
	path, folder := program(t), public(t)
	repository := filepath.Join(folder, "repository")
	if out, err := exec.Command("git", "init", "--quiet", repository).CombinedOutput(); err != nil {
		t.Skipf("no git here: %v, %s", err, out)
	}
	root := filepath.Join(public(t), "build")
	script := "cd " + repository + " && git status --short && echo fine"
	if got, status := runAs(t, path, root, "trusted", script, 1234, "022"); got != "fine\n" || status.Exit != 0 {
		t.Errorf("%q, exit %d; want git to work", got, status.Exit)
	}
	t.Setenv("GIT_CONFIG_COUNT", "0")
	if got, status := runAs(t, path, root, "own", script, 1234, "022"); status.Exit == 0 {
		t.Errorf("%q: the test does not see what git refuses", got)
	}
}
