package images

import (
	"io/fs"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Recipe says what an image is made of. An image that differs from another in
// a detail is another value; no code is needed.
type Recipe struct {
	// Name and Tag become those of the image.
	Name, Tag string
	// Layers are the image's layers, lowest first. Recipes that name the same
	// layer share it: it is made, stored and pulled once.
	Layers []Layer
	// Config is what a container of the image runs by default.
	Config v1.Config
	// Architecture is written into the image in place of this machine's. It
	// changes nothing else, which makes an image that claims to be for
	// another machine.
	Architecture string
	// Platforms, when there are any, make the reference an image index with
	// an image for each of these architectures. Its layers are made for each,
	// so it can hold no Debian packages of another machine.
	Platforms []string
}

// Tag is the tag of the standard images.
const Tag = "1"

// searchPath is the search path of the standard images.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Standard are the images every local tenant cluster has, each as
// localtenant/<name>:1.
func Standard() []Recipe {
	return slices.Concat(baseImages(), jobImages(), serviceImages(), platformImages())
}

// baseImages are what nodes and ordinary jobs need.
func baseImages() []Recipe {
	return []Recipe{
		{
			Name: "localtenant/pause", Tag: Tag,
			Layers: []Layer{GoProgram{Package: "./images/pause", Path: "pause"}},
			Config: v1.Config{Entrypoint: []string{"/pause"}},
		},
		{
			Name: "localtenant/busybox", Tag: Tag,
			Layers: []Layer{Busybox{}, home()},
			Config: v1.Config{Cmd: []string{"sh"}, Env: []string{searchPath}},
		},
		{
			Name: "localtenant/debian", Tag: Tag,
			Layers: []Layer{debian(), home()},
			Config: v1.Config{Cmd: []string{"bash"}, Env: debianEnv()},
		},
		{
			// GitLab's helper image has its program under this one name, not
			// under gitlab-runner (dockerfiles/runner-helper/Dockerfile in
			// GitLab Runner's source).
			Name: "localtenant/helper", Tag: Tag,
			Layers: []Layer{debian(), home(), GoProgram{Package: "./helper", Path: "usr/bin/gitlab-runner-helper"}},
			Config: v1.Config{Cmd: []string{"bash"}, Env: debianEnv()},
		},
	}
}

// debian is a small Debian with bash and git.
func debian() DebianPackages {
	return DebianPackages{
		Install: []string{
			"base-files", "base-passwd", "bash", "ca-certificates", "coreutils", "dash", "debianutils",
			"diffutils", "findutils", "git", "grep", "gzip", "hostname", "libc-bin", "mawk", "ncurses-base",
			"procps", "sed", "tar", "usr-is-merged", "util-linux",
		},
		// git needs the large perl for add-ons only (send-email, svn); its
		// clone, fetch, checkout, clean and submodule do without. perl-base
		// stays, as it does in every Debian.
		Without: []string{"perl", "perl-modules-*", "libperl5*", "liberror-perl", "libgdbm*", "git-man"},
	}
}

func debianEnv() []string { return []string{searchPath, "LANG=C.UTF-8"} }

func home() Files {
	return Files{
		Name: "home of the ordinary user",
		Entries: []Entry{
			{Path: "home/job", Mode: fs.ModeDir | 0o755, UID: jobUser, GID: jobUser},
		},
	}
}
