package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Options says what to build, from what and where to keep it.
type Options struct {
	// Recipes are the images to make; nil means Standard().
	Recipes []Recipe
	// Cache is the folder of finished layers and downloaded packages. It is
	// created when missing. Finished images read from it.
	Cache string
	// Source is the folder of the module examples/localtenant, where the Go
	// programs of the images are compiled.
	Source string
	// Out gets progress lines; nil means none.
	Out io.Writer
	// Env is the environment of the programs that are run (apt, dpkg-deb,
	// go); nil means that of this process.
	Env []string
	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Build makes the images, or takes them from the cache when their inputs are
// unchanged. When apt does not know a package or cannot fetch it, its lists
// are refreshed once, for which root is needed.
func Build(ctx context.Context, opts Options) ([]Image, error) {
	w, err := newWorkshop(opts)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, w.store.dir, func() { w.report("waiting for another build to finish") })
	if err != nil {
		return nil, err
	}
	imgs, err := w.build(ctx, opts.Recipes)
	return imgs, errors.Join(err, unlock())
}

// workshop is one build with its tools.
type workshop struct {
	run          commands
	apt          *apt
	store        *store
	source       string
	architecture string
	isRoot       bool
	out          io.Writer
	now          func() time.Time

	layers    map[string]v1.Layer // by key, made or found in this build
	refreshed bool                // apt's lists
}

func newWorkshop(opts Options) (*workshop, error) {
	if opts.Cache == "" || opts.Source == "" {
		return nil, errors.New("images: a cache folder and the folder of the source are needed")
	}
	cache, err := filepath.Abs(opts.Cache)
	if err != nil {
		return nil, fmt.Errorf("image cache: %w", err)
	}
	source, err := filepath.Abs(opts.Source)
	if err != nil {
		return nil, fmt.Errorf("images' source: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the image cache: %w", err)
	}
	w := &workshop{
		run: commands{env: opts.Env}, source: source, architecture: runtime.GOARCH, isRoot: os.Geteuid() == 0,
		out: opts.Out, now: opts.Now, layers: map[string]v1.Layer{},
	}
	if w.run.env == nil {
		w.run.env = os.Environ()
	}
	if w.out == nil {
		w.out = io.Discard
	}
	if w.now == nil {
		w.now = time.Now
	}
	w.apt = &apt{run: w.run, folder: filepath.Join(cache, "apt")}
	w.store = &store{dir: cache, now: w.now}
	return w, nil
}

// report writes one progress line. A terminal that is gone ends no build.
func (w *workshop) report(format string, args ...any) {
	_, _ = fmt.Fprintf(w.out, "images: "+format+"\n", args...)
}

func (w *workshop) build(ctx context.Context, recipes []Recipe) ([]Image, error) {
	started := w.now()
	if recipes == nil {
		recipes = Standard()
	}
	if err := w.store.sweep(); err != nil {
		return nil, err
	}
	imgs := make([]Image, 0, len(recipes))
	for _, recipe := range recipes {
		img, err := w.image(ctx, recipe)
		if err != nil {
			return nil, fmt.Errorf("image %s, %w", recipe.Name, err)
		}
		imgs = append(imgs, img)
	}
	w.report("%d images ready in %s", len(imgs), w.since(started))
	return imgs, nil
}

// image makes what the recipe describes: an image, or an index of images.
func (w *workshop) image(ctx context.Context, recipe Recipe) (Image, error) {
	made := Image{Name: recipe.Name, Tag: recipe.Tag}
	if len(recipe.Platforms) == 0 {
		var err error
		made.Image, err = w.platform(ctx, recipe)
		return made, err
	}
	ofPlatform := make([]v1.Image, len(recipe.Platforms))
	for i, architecture := range recipe.Platforms {
		other := *w
		other.architecture = architecture
		var err error
		if ofPlatform[i], err = other.platform(ctx, recipe); err != nil {
			return Image{}, fmt.Errorf("linux/%s: %w", architecture, err)
		}
	}
	made.Index = index(recipe, ofPlatform)
	return made, nil
}

// platform makes the image for the workshop's architecture.
func (w *workshop) platform(ctx context.Context, recipe Recipe) (v1.Image, error) {
	layers := make([]v1.Layer, 0, len(recipe.Layers))
	for _, part := range recipe.Layers {
		layer, err := w.layer(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.Label(), err)
		}
		layers = append(layers, layer)
	}
	return assemble(recipe, w.architecture, layers)
}

func (w *workshop) since(t time.Time) time.Duration {
	return w.now().Sub(t).Round(10 * time.Millisecond)
}

// layer finds or makes a layer, with fresh package lists if it takes those.
func (w *workshop) layer(ctx context.Context, part Layer) (v1.Layer, error) {
	layer, err := w.layerOnce(ctx, part)
	var stale *aptError
	if !errors.As(err, &stale) || w.refreshed || !w.isRoot {
		return layer, err
	}
	w.report("%s: refreshing apt's package lists, because: %v", part.Label(), stale.err)
	w.refreshed = true
	if updateErr := w.apt.update(ctx); updateErr != nil {
		return nil, errors.Join(err, updateErr)
	}
	return w.layerOnce(ctx, part)
}

func (w *workshop) layerOnce(ctx context.Context, part Layer) (v1.Layer, error) {
	key, err := keyOf(ctx, w, part)
	if err != nil {
		return nil, err
	}
	if layer, known := w.layers[key]; known {
		return layer, nil
	}
	layer, err := w.store.open(key)
	if errors.Is(err, os.ErrNotExist) {
		layer, err = w.makeLayer(ctx, key, part)
	}
	if err != nil {
		return nil, err
	}
	w.layers[key] = layer
	return layer, nil
}

func (w *workshop) makeLayer(ctx context.Context, key string, part Layer) (v1.Layer, error) {
	started := w.now()
	w.report("%s: making it", part.Label())
	content := newTree()
	if err := part.fill(ctx, w, content); err != nil {
		return nil, err
	}
	layer, err := w.store.create(key, content.writeTar)
	if err != nil {
		return nil, err
	}
	size, err := layer.Size()
	if err != nil {
		return nil, err
	}
	w.report("%s: made, %.1f MB compressed, in %s", part.Label(), float64(size)/1e6, w.since(started))
	return layer, nil
}
