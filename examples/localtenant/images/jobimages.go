package images

import (
	_ "embed"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

//go:embed scripts/entrypoint.sh
var entrypointScript string

// jobImages are images that jobs bring along and a driver has to cope with.
func jobImages() []Recipe {
	user := func(name, user string) Recipe {
		return Recipe{
			Name: "localtenant/" + name, Tag: Tag,
			Layers: []Layer{debian(), home()},
			Config: v1.Config{
				Cmd: []string{"bash"}, User: user, WorkingDir: "/home/job",
				Env: append(debianEnv(), "HOME=/home/job"),
			},
		}
	}
	return []Recipe{
		{
			Name: "localtenant/alpine-like", Tag: Tag,
			Layers: []Layer{Alpine{}},
			Config: v1.Config{Cmd: []string{"/bin/sh"}, Env: []string{searchPath}},
		},
		{
			// A shell and nothing else: no /tmp, no users, no other program.
			// bash is the one shell that Debian has as a static program
			// without other commands in it.
			Name: "localtenant/distroless-shell", Tag: Tag,
			Layers: []Layer{PackageFile{Package: "bash-static", From: []string{"bin/bash-static", "usr/bin/bash-static"}, Path: "bin/sh"}},
			Config: v1.Config{Entrypoint: []string{"/bin/sh"}, Env: []string{searchPath}},
		},
		// The kubelet cannot know that a user with a name is not root, and
		// refuses it when a Pod says runAsNonRoot. A number it can judge.
		user("nonroot", "job"),
		user("nonroot-number", strconv.Itoa(jobUser)+":"+strconv.Itoa(jobUser)),
		{
			Name: "localtenant/entrypoint-script", Tag: Tag,
			Layers: []Layer{debian(), home(), script("entrypoint.sh", entrypointScript)},
			Config: v1.Config{
				Entrypoint: []string{"/usr/local/bin/entrypoint.sh"}, Cmd: []string{"bash"}, Env: debianEnv(),
			},
		},
		{
			// Its entrypoint takes no shell for an argument.
			Name: "localtenant/entrypoint-program", Tag: Tag,
			Layers: []Layer{debian(), home()},
			Config: v1.Config{Entrypoint: []string{"git"}, Cmd: []string{"--version"}, Env: debianEnv()},
		},
	}
}

// script is a layer with one program in /usr/local/bin.
func script(name, text string) Files {
	return Files{Name: name, Entries: []Entry{{Path: "usr/local/bin/" + name, Mode: 0o755, Body: text}}}
}
