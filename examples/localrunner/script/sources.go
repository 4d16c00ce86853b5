package script

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"runtime"
	"strconv"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

func (w *writer) getSources() error {
	w.exports(true)
	w.export("GIT_TERMINAL_PROMPT", "0")
	w.export("GCM_INTERACTIVE", "Never")

	strategy := w.b.GitStrategy()
	fetches := strategy == build.GitClone || strategy == build.GitFetch
	if fetches {
		if pre := w.b.Runner.PreGetSourcesScript; pre != "" {
			w.commands(pre)
		}
		w.commands(w.hook(job.HookPreGetSources)...)
	}
	if err := w.fetchSources(strategy); err != nil {
		return err
	}
	w.checkout()
	w.submodules()
	if fetches {
		w.commands(w.hook(job.HookPostGetSources)...)
		if post := w.b.Runner.PostGetSourcesScript; post != "" {
			w.commands(post)
		}
	}
	w.forgetCredentials()
	w.giveAway(w.b.BuildsDir())
	return nil
}

func (w *writer) fetchSources(strategy string) error {
	project := w.b.ProjectDir()
	switch strategy {
	case build.GitNone:
		w.noticef("Skipping Git repository setup")
		w.run("mkdir", "-p", project)
		return nil
	case build.GitEmpty:
		w.noticef("Skipping Git repository setup and creating an empty build directory")
		w.removeDir(project)
		w.run("mkdir", "-p", project)
		return nil
	}
	remote, err := w.remoteURL()
	if err != nil {
		return err
	}
	w.cleanGitFolder()
	w.configureGit(remote)
	if strategy == build.GitClone {
		w.removeDir(project)
	}
	w.fetch(withoutUser(remote))
	return nil
}

// remoteURL is the repository's URL with the job's credentials. clone_url of
// the runner's configuration replaces scheme and host.
func (w *writer) remoteURL() (*url.URL, error) {
	remote, err := url.Parse(w.b.Job.Git.RepoURL)
	if err != nil {
		return nil, fmt.Errorf("the repository's URL: %w", err)
	}
	if w.b.Runner.CloneURL == "" {
		return remote, nil
	}
	clone, err := url.Parse(w.b.Runner.CloneURL)
	if err != nil {
		return nil, fmt.Errorf("clone_url %q: %w", w.b.Runner.CloneURL, err)
	}
	clone.User = remote.User
	clone.Path = path.Join("/", clone.Path, remote.Path)
	return clone, nil
}

func withoutUser(u *url.URL) string {
	bare := *u
	bare.User = nil
	return bare.String()
}

// configureGit keeps the credentials out of the project folder: they are in a
// configuration file beside it, which the repository includes and which
// turns the plain URL into one with credentials.
func (w *writer) configureGit(remote *url.URL) {
	template, external := w.temp(gitTemplate), w.temp(gitConfigFile)
	w.run("mkdir", "-p", template)
	if w.b.Runner.SafeDirectoryCheckout {
		w.run("git", "config", "--global", "--add", "safe.directory", w.b.ProjectDir())
	}
	for _, setting := range [][2]string{
		{"init.defaultBranch", "none"},
		{"fetch.recurseSubmodules", "false"},
		{"credential.interactive", "never"},
		{"gc.autoDetach", "false"},
	} {
		w.run("git", "config", "-f", path.Join(template, "config"), setting[0], setting[1])
	}
	w.removeFile(external)
	if w.b.Flag(build.FlagBundleURIs) {
		w.run("git", "config", "-f", external, "transfer.bundleURI", "true")
	}
	if plain := withoutUser(remote); plain != remote.String() {
		w.run("git", "config", "-f", external, "--replace-all",
			"url."+remote.String()+".insteadOf", plain, "^"+regexp.QuoteMeta(plain)+"$")
	}
	w.include(path.Join(template, "config"))
	w.export("GLR_EXT_GIT_CONFIG_PATH", external)
}

// include makes a git configuration file include the one with credentials.
func (w *writer) include(file string) {
	w.run("git", "config", "-f", file, "--replace-all", "include.path",
		w.temp(gitConfigFile), regexp.QuoteMeta(gitConfigFile)+"$")
}

func (w *writer) fetch(remote string) {
	git := w.b.Job.Git
	if git.Depth > 0 {
		w.noticef("Fetching changes with git depth set to %d...", git.Depth)
	} else {
		w.noticef("Fetching changes...")
	}
	init := []string{"git", "init", w.b.ProjectDir(), "--template", w.temp(gitTemplate)}
	if git.ObjectFormat != "" && git.ObjectFormat != "sha1" {
		init = append(init, "--object-format", git.ObjectFormat)
	}
	w.run(init...)
	w.run("cd", w.b.ProjectDir())
	w.ifElse(w.words("git", "remote", "add", "origin", remote)+" >/dev/null 2>&1", func() {
		w.noticef("Created fresh repository.")
	}, func() {
		w.run("git", "remote", "set-url", "origin", remote)
		w.include(path.Join(".git", "config")) // a template does not change an existing repository
	})

	agent := fmt.Sprintf("http.userAgent=gitlab-runner %s %s/%s", build.RunnerVersion, runtime.GOOS, runtime.GOARCH)
	args := []string{"git", "-c", agent, "fetch", "origin", "--no-recurse-submodules"}
	args = append(args, git.Refspecs...)
	if git.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(git.Depth))
	}
	args = append(args, w.b.Words("GIT_FETCH_EXTRA_FLAGS", "--prune", "--quiet")...)
	if git.Depth > 0 {
		w.run(args...)
		return
	}
	w.ifElse("[ -e .git/shallow ]", func() {
		w.run(append(args[:len(args):len(args)], "--unshallow")...)
	}, func() {
		w.run(args...)
	})
}

func (w *writer) checkout() {
	git := w.b.Job.Git
	switch s := w.b.GitStrategy(); {
	case s == build.GitNone || s == build.GitEmpty || !w.b.GitCheckout():
		w.noticef("Skipping Git checkout")
		return
	}
	w.noticef("Checking out %s as detached HEAD (ref is %s)...", git.SHA[:min(8, len(git.SHA))], git.Ref)
	w.run("git", "-c", "submodule.recurse=false", "checkout", "-f", "-q", git.SHA)
	if flags := w.b.Words("GIT_CLEAN_FLAGS", "-ffdx"); len(flags) > 0 {
		w.run(append([]string{"git", "clean"}, flags...)...)
	}
}

func (w *writer) submodules() {
	strategy := w.b.Submodules()
	if strategy == "none" {
		w.noticef("Skipping Git submodules setup")
		return
	}
	w.noticef("Updating/initializing submodules...")
	update := []string{"git", "-c", "include.path=" + w.temp(gitConfigFile), "submodule", "update", "--init"}
	sync := []string{"git", "submodule", "sync"}
	each := []string{"git", "submodule", "foreach"}
	if strategy == "recursive" {
		update, sync, each = append(update, "--recursive"), append(sync, "--recursive"), append(each, "--recursive")
	}
	if depth := w.b.Job.Git.Depth; depth > 0 {
		update = append(update, "--depth", strconv.Itoa(depth))
	}
	update = append(update, w.b.Words("GIT_SUBMODULE_UPDATE_FLAGS")...)
	if paths := w.b.Words("GIT_SUBMODULE_PATHS"); len(paths) > 0 {
		update = append(append(update, "--"), paths...)
	}
	w.run("git", "submodule", "init")
	w.run(sync...)
	w.run(update...)
	w.run(append(each[:len(each):len(each)], "git", "clean", "-ffdx")...)
	w.run(append(each[:len(each):len(each)], "git", "reset", "--hard")...)
	w.run(append(each, "git", "config", "--replace-all", "include.path", w.temp(gitConfigFile))...)
}

// clearWorktree runs between two attempts at get_sources.
func (w *writer) clearWorktree() {
	w.noticef("Deleting tracked and untracked files...")
	w.ifThen("[ -d "+w.quote(w.b.ProjectDir())+" ]", func() {
		w.run("cd", w.b.ProjectDir())
		w.run("git", "rm", "-rf", "--ignore-unmatch", "--quiet", ".")
		w.run("git", "clean", "-ffdx", "-q")
	})
}

// cleanGitFolder removes what an interrupted git left behind, and the
// configuration that a job could have planted for the next one.
func (w *writer) cleanGitFolder() {
	git := path.Join(w.b.ProjectDir(), ".git")
	for _, name := range []string{"index.lock", "shallow.lock", "HEAD.lock", "config.lock", "hooks/post-checkout"} {
		w.removeFile(path.Join(git, name))
	}
	refs := w.quote(path.Join(git, "refs"))
	w.ifThen("[ -d "+refs+" ]", func() {
		w.linef("find %s -name '*.lock' -type f -exec rm -f {} ';'", refs)
	})
	if !w.b.CleanGitConfig() {
		return
	}
	for _, dir := range []string{w.temp(gitTemplate), git} {
		w.removeFile(path.Join(dir, "config"))
		w.removeDir(path.Join(dir, "hooks"))
	}
}

// forgetCredentials asks a credential helper of the user's, if there is one,
// to drop the job token.
func (w *writer) forgetCredentials() {
	remote, err := w.remoteURL()
	if err != nil || remote.Host == "" {
		return
	}
	host := remote.Scheme + "://" + remote.Host
	w.linef("printf '%%s\\n' %s username=gitlab-ci-token | git credential reject || true", w.quote("url="+host))
}
