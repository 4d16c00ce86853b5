package images

import (
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// platformImages are images for more machines, or other machines, than this
// one.
func platformImages() []Recipe {
	other := otherArchitecture(runtime.GOARCH)
	program := GoProgram{Package: "./images/platform", Path: "platform"}
	config := v1.Config{Entrypoint: []string{"/platform"}}
	return []Recipe{
		{
			Name: "localtenant/multi-arch", Tag: Tag,
			Layers: []Layer{program}, Config: config, Platforms: []string{"amd64", "arm64"},
		},
		{
			// Nodes find no image for themselves in it.
			Name: "localtenant/foreign-arch", Tag: Tag,
			Layers: []Layer{program}, Config: config, Platforms: []string{other},
		},
		{
			// It says that it is for this machine; its programs, even its
			// shells, are for the other one.
			Name: "localtenant/wrong-program", Tag: Tag,
			Layers: []Layer{
				GoProgram{Package: "./images/platform", Path: "platform", Architecture: other},
				GoProgram{Package: "./images/platform", Path: "bin/sh", Architecture: other},
				GoProgram{Package: "./images/platform", Path: "bin/bash", Architecture: other},
			},
			Config: config,
		},
	}
}

// otherArchitecture is the one of the two usual ones that this machine is not.
func otherArchitecture(own string) string {
	if own == "arm64" {
		return "amd64"
	}
	return "arm64"
}
