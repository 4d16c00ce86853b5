// Package images makes the container images of the local tenant cluster on
// this machine, from Debian packages and small Go programs, with no network
// beyond the machine's apt. What it makes is kept in a cache folder by its
// inputs, so a second build is quick, and is the same byte for byte for the
// same inputs.
package images

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is a finished OCI image. Its layers stay in the cache folder and are
// read from there when the image is pushed.
type Image struct {
	// Name is the repository, for example localtenant/debian.
	Name string
	// Tag is the tag, for example 1.
	Tag string
	// Image is the content, or nil when it is an index.
	Image v1.Image
	// Index is the content of an image index, which has an image for each of
	// its platforms.
	Index v1.ImageIndex
}

// Reference is name:tag, without a registry.
func (i Image) Reference() string { return i.Name + ":" + i.Tag }

// content is what the reference stands for.
func (i Image) content() remote.Taggable {
	if i.Index != nil {
		return i.Index
	}
	return i.Image
}

// fixedTime is the time of every file and image: equal inputs give equal
// images. It is late enough for formats that know no time before 1980.
func fixedTime() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// assemble makes the image of a recipe from its layers.
func assemble(recipe Recipe, architecture string, layers []v1.Layer) (v1.Image, error) {
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	addenda := make([]mutate.Addendum, len(layers))
	for i, layer := range layers {
		addenda[i] = mutate.Addendum{
			Layer:     layer,
			MediaType: types.OCILayer,
			History:   v1.History{Created: v1.Time{Time: fixedTime()}, CreatedBy: recipe.Layers[i].Label()},
		}
	}
	img, err := mutate.Append(img, addenda...)
	if err != nil {
		return nil, fmt.Errorf("put together: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read its configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS = "linux"
	config.Architecture = architecture
	if recipe.Architecture != "" {
		config.Architecture = recipe.Architecture
	}
	config.Created = v1.Time{Time: fixedTime()}
	config.Config = recipe.Config
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return nil, fmt.Errorf("configure: %w", err)
	}
	return img, nil
}

// index makes the index of a recipe's images.
func index(recipe Recipe, ofPlatform []v1.Image) v1.ImageIndex {
	addenda := make([]mutate.IndexAddendum, len(ofPlatform))
	for i, img := range ofPlatform {
		addenda[i] = mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: recipe.Platforms[i]}},
		}
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), addenda...)
}

// Push writes the images to the registry at addr (host:port, plain HTTP, no
// authentication). Blobs that are there already are not sent again.
func Push(ctx context.Context, addr string, imgs []Image) error {
	writes := make(map[name.Reference]remote.Taggable, len(imgs))
	for _, img := range imgs {
		ref, err := name.NewTag(addr+"/"+img.Reference(), name.Insecure)
		if err != nil {
			return fmt.Errorf("push %s to %s: %w", img.Reference(), addr, err)
		}
		writes[ref] = img.content()
	}
	if err := remote.MultiWrite(writes, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("push %d images to %s: %w", len(imgs), addr, err)
	}
	return nil
}
