package images

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// storedLayer is a finished layer in the store. Its digests were taken when it
// was made, so nothing is read until somebody wants the content.
type storedLayer struct {
	description
	file string
}

var _ v1.Layer = (*storedLayer)(nil)

// Digest is the hash of the compressed tar.
func (l *storedLayer) Digest() (v1.Hash, error) { return l.description.Digest, nil }

// DiffID is the hash of the tar.
func (l *storedLayer) DiffID() (v1.Hash, error) { return l.description.DiffID, nil }

// Size is that of the compressed tar, in bytes.
func (l *storedLayer) Size() (int64, error) { return l.description.Size, nil }

// MediaType is that of a compressed tar.
func (l *storedLayer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }

// Compressed opens the compressed tar.
func (l *storedLayer) Compressed() (io.ReadCloser, error) {
	file, err := os.Open(l.file)
	if err != nil {
		return nil, fmt.Errorf("open layer: %w", err)
	}
	return file, nil
}

// Uncompressed opens the tar.
func (l *storedLayer) Uncompressed() (io.ReadCloser, error) {
	file, err := os.Open(l.file)
	if err != nil {
		return nil, fmt.Errorf("open layer: %w", err)
	}
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read layer %s: %w", l.file, err), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unzipped, file}, nil
}
