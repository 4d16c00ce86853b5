package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unzip unpacks an archive into the project folder. An archive that wants to
// write elsewhere is refused as a whole, before anything is written; what slips
// through links on the way is stopped by os.Root.
func unzip(h host, root *os.Root, file string) error {
	if err := checkFormat(file); err != nil {
		return err
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("open archive: %w", err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	for _, entry := range archive.File {
		if !filepath.IsLocal(entry.Name) || strings.Contains(entry.Name, `\`) {
			return fmt.Errorf("archive entry %q is refused, nothing was unpacked: %w", entry.Name, errOutside)
		}
	}
	var folders []*zip.File
	for _, entry := range archive.File {
		if err := unpackEntry(h, root, entry); err != nil {
			return fmt.Errorf("unpack %s: %w", entry.Name, err)
		}
		if entry.Mode().IsDir() {
			folders = append(folders, entry)
		}
	}
	// Last, and the innermost first: a folder may be read-only, and its time
	// changes with what is put into it.
	for _, entry := range slices.Backward(folders) {
		if err := finishEntry(root, entry); err != nil {
			return fmt.Errorf("unpack %s: %w", entry.Name, err)
		}
	}
	return nil
}

// checkFormat names the formats of the real program that this one cannot read.
func checkFormat(name string) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open archive: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	start := make([]byte, 4)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read archive: %w", err)
	}
	start = start[:n]
	switch {
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}): // RFC 8878
		return errors.New("the archive is a zstd stream, which this stand-in cannot read")
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}): // RFC 1952
		return errors.New("the archive is a gzip stream, which cannot be unpacked")
	}
	return nil
}

func unpackEntry(h host, root *os.Root, entry *zip.File) error {
	name := path.Clean(entry.Name)
	switch entry.Mode().Type() {
	case fs.ModeDir:
		// Writable for now, the real mode comes last.
		return root.MkdirAll(name, 0o755)
	case fs.ModeSymlink, 0:
	default:
		h.console.warn("%s is left out: a %s cannot be unpacked", name, entry.Mode().Type())
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	// What is there is replaced and not written into: it may be a link, or a
	// program that runs.
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	if entry.Mode().Type() == fs.ModeSymlink {
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return root.Symlink(string(target), name)
	}
	if err := writeFile(root, name, content); err != nil {
		return err
	}
	return finishEntry(root, entry)
}

func writeFile(root *os.Root, name string, content io.Reader) (err error) {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, content)
	return err
}

// finishEntry gives a file or folder its mode, whatever the umask, and its
// time, by which cache-archiver knows what has changed.
func finishEntry(root *os.Root, entry *zip.File) error {
	name := path.Clean(entry.Name)
	if err := root.Chmod(name, entry.Mode().Perm()); err != nil {
		return err
	}
	if entry.Modified.IsZero() {
		return nil
	}
	return root.Chtimes(name, entry.Modified, entry.Modified)
}
