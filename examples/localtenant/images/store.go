package images

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// temporary begins the names of folders that are not finished.
	temporary = "building-"
	// finished begins the names of finished layers' folders.
	finished = "layer-"
	// blobName and descriptionName are the files of a finished layer.
	blobName        = "layer.tar.gz"
	descriptionName = "layer.json"
	// keep is how long a layer stays that no build asks for.
	keep = 30 * 24 * time.Hour
)

// store keeps finished layers by key, each in a folder that appears whole or
// not at all. One build at a time works in it (see lock).
type store struct {
	dir string
	now func() time.Time
}

// description is what is known of a finished layer without reading it.
type description struct {
	Digest v1.Hash `json:"digest"` // of the compressed tar
	DiffID v1.Hash `json:"diffID"` // of the tar
	Size   int64   `json:"size"`   // bytes, compressed
}

// open returns the layer of a key, or fs.ErrNotExist.
func (s *store) open(key string) (v1.Layer, error) {
	folder := filepath.Join(s.dir, finished+key)
	text, err := os.ReadFile(filepath.Join(folder, descriptionName))
	if err != nil {
		return nil, fmt.Errorf("open layer: %w", err)
	}
	layer := &storedLayer{file: filepath.Join(folder, blobName)}
	if err := json.Unmarshal(text, &layer.description); err != nil {
		return nil, fmt.Errorf("read %s (remove its folder to make the layer again): %w",
			filepath.Join(folder, descriptionName), err)
	}
	info, err := os.Stat(layer.file)
	if err != nil {
		return nil, fmt.Errorf("open layer: %w", err)
	}
	if info.Size() != layer.description.Size {
		return nil, fmt.Errorf("layer %s is %d bytes long and not %d: remove its folder to make it again",
			layer.file, info.Size(), layer.description.Size)
	}
	// The time of its last use, for sweep.
	if err := os.Chtimes(folder, s.now(), s.now()); err != nil {
		return nil, fmt.Errorf("mark layer as used: %w", err)
	}
	return layer, nil
}

// create makes the layer of a key from what fill writes.
func (s *store) create(key string, fill func(io.Writer) error) (v1.Layer, error) {
	folder, err := os.MkdirTemp(s.dir, temporary)
	if err != nil {
		return nil, fmt.Errorf("make a folder for a layer: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // after the rename there is nothing left to remove
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for a layer: %w", err)
	}
	described, err := writeBlob(filepath.Join(folder, blobName), fill)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(described)
	if err != nil {
		return nil, fmt.Errorf("describe layer: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, descriptionName), text, 0o644); err != nil {
		return nil, fmt.Errorf("describe layer: %w", err)
	}
	if err := os.Rename(folder, filepath.Join(s.dir, finished+key)); err != nil {
		return nil, fmt.Errorf("finish layer: %w", err)
	}
	return s.open(key)
}

// writeBlob writes the compressed tar and takes its measures on the way.
func writeBlob(path string, fill func(io.Writer) error) (described description, err error) {
	file, err := os.Create(path)
	if err != nil {
		return description{}, fmt.Errorf("write layer: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed := &measure{hash: sha256.New()}
	plain := &measure{hash: sha256.New()}
	// The layer goes from this machine to this machine: speed before size.
	zip, err := gzip.NewWriterLevel(io.MultiWriter(file, compressed), gzip.BestSpeed)
	if err != nil {
		return description{}, fmt.Errorf("write layer: %w", err)
	}
	if err := fill(io.MultiWriter(zip, plain)); err != nil {
		return description{}, err
	}
	if err := zip.Close(); err != nil {
		return description{}, fmt.Errorf("write layer: %w", err)
	}
	// A layer must not come back half empty after a power cut.
	if err := file.Sync(); err != nil {
		return description{}, fmt.Errorf("write layer: %w", err)
	}
	return description{Digest: compressed.digest(), DiffID: plain.digest(), Size: compressed.size}, nil
}

// measure counts and hashes what is written.
type measure struct {
	hash hash.Hash
	size int64
}

func (m *measure) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	return m.hash.Write(p)
}

func (m *measure) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", m.hash.Sum(nil))}
}

// sweep removes what crashed builds left and layers long out of use. It
// touches nothing but folders of our own names.
func (s *store) sweep() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("sweep the cache: %w", err)
	}
	for _, entry := range entries {
		stale, err := s.stale(entry)
		if err != nil {
			return err
		}
		if !stale {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
			return fmt.Errorf("sweep the cache: %w", err)
		}
	}
	return nil
}

func (s *store) stale(entry fs.DirEntry) (bool, error) {
	switch {
	case !entry.IsDir():
		return false, nil
	case strings.HasPrefix(entry.Name(), temporary):
		return true, nil // the lock is ours: nobody is building
	case !strings.HasPrefix(entry.Name(), finished):
		return false, nil
	}
	info, err := entry.Info()
	if err != nil {
		return false, fmt.Errorf("sweep the cache: %w", err)
	}
	return s.now().Sub(info.ModTime()) > keep, nil
}

// writeAtomic writes a small file whole or not at all.
func writeAtomic(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
