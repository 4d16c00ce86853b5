package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// environment is what the shell starts with: the container's own, mended where
// a script could not work with it. The script's own exports come after it.
func (v *supervisor) environment() []string {
	root := v.folder.root()
	env := withPath(containerEnvironment(root, "/proc", os.Environ()), v.request.Path)
	env = withFolder(env, "HOME", "", filepath.Join(root, "home-"+strconv.Itoa(os.Getuid())))
	env = withFolder(env, "TMPDIR", defaultTemp, filepath.Join(root, "tmp-"+strconv.Itoa(os.Getuid())))
	return trustingGit(env)
}

// defaultTemp is where programs make their temporary files without TMPDIR.
const defaultTemp = "/tmp"

// withPath adds a folder at the end of PATH.
func withPath(env []string, folder string) []string {
	if folder == "" {
		return env
	}
	path, found := lookup(env, "PATH")
	if !found {
		path = defaultPath
	}
	return set(env, "PATH", path+":"+folder)
}

// withFolder has a variable name a folder that the script can write to: the one
// it names, or otherwise where it is absent; or else other, which is made. An
// image's user may have no home of its own, or one that belongs to root, and
// the root filesystem may be read-only: then git, for one, cannot keep its
// configuration. Where neither will do, the variable stays as it is.
func withFolder(env []string, name, otherwise, other string) []string {
	folder, found := lookup(env, name)
	if !found {
		folder = otherwise
	}
	if folder != "" && writable(folder) {
		return env
	}
	if os.Mkdir(other, 0o700) != nil && (trusted(other) != nil || !writable(other)) {
		return env
	}
	return set(env, name, other)
}

// Modes of access(2).
const accessWrite = 2 | 1 // W_OK and X_OK

func writable(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.IsDir() && syscall.Access(folder, accessWrite) == nil
}

// trustingGit has git work in folders that another user has made: another
// container's user, perhaps, of the same job. A Pod holds the files of one job
// alone, so no folder in it belongs to a stranger. An image that configures
// git by variables itself is left alone.
func trustingGit(env []string) []string {
	if _, found := lookup(env, "GIT_CONFIG_COUNT"); found {
		return env
	}
	return append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
}

// lookup is the last value of a variable.
func lookup(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(env[i], name+"="); found {
			return value, true
		}
	}
	return "", false
}

// set gives a variable one value.
func set(env []string, name, value string) []string {
	kept := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, name+"=") {
			kept = append(kept, entry)
		}
	}
	return append(kept, name+"="+value)
}
