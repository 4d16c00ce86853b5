package images

import (
	"context"
	"io/fs"
)

// The users of the images, each with a group of the same id.
const (
	jobUser      = 1000 // the ordinary one
	redisUser    = 999
	postgresUser = 998
)

// Layer is one layer of an image as a value: what goes in. Its kinds are
// DebianPackages, PackageFile, Busybox, Alpine, GoProgram and Files.
type Layer interface {
	// Label is a short name for progress lines and the image's history.
	Label() string
	// inputs describes everything the content depends on.
	inputs(ctx context.Context, w *workshop) (string, error)
	// fill puts the content into the tree.
	fill(ctx context.Context, w *workshop, t *tree) error
}

// Entry is one file, folder or symbolic link of a layer.
type Entry struct {
	// Path is the place in the image, without a leading slash.
	Path string
	// Mode is the type and the permissions: fs.ModeDir, fs.ModeSymlink or
	// neither; fs.ModeSticky, fs.ModeSetuid and fs.ModeSetgid are kept.
	Mode fs.FileMode
	// UID and GID own it.
	UID, GID int
	// Target is where a symbolic link points to.
	Target string
	// Body is the content of a file.
	Body string
}
