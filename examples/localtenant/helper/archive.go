package main

import (
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// writeZip writes the paths of the project folder as a zip archive with their
// modes, times and links.
func writeZip(w io.Writer, h host, root *os.Root, names []string) error {
	archive := zip.NewWriter(w)
	for _, name := range names {
		if err := addToZip(archive, h, root, name); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
	}
	return archive.Close()
}

func addToZip(archive *zip.Writer, h host, root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		h.console.warn("%s is left out: it has gone since the files were listed", name)
		return nil
	}
	if err != nil {
		return err
	}
	header, err := zip.FileInfoHeader(info)
	if err != nil {
		return err
	}
	header.Name = name
	switch info.Mode().Type() {
	case fs.ModeDir:
		header.Name += "/"
		_, err = archive.CreateHeader(header)
		return err
	case fs.ModeSymlink:
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = io.WriteString(entry, target)
		return err
	case 0:
		header.Method = zip.Deflate
		return copyToZip(archive, header, root, name)
	default:
		h.console.warn("%s is left out: a %s cannot be archived", name, info.Mode().Type())
		return nil
	}
}

// copyToZip adds a regular file.
func copyToZip(archive *zip.Writer, header *zip.FileHeader, root *os.Root, name string) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	entry, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, file)
	return err
}

// writeGzip writes each regular file as a gzip stream of its own, one after the
// other, which is how GitLab takes reports.
func writeGzip(w io.Writer, h host, root *os.Root, names []string) error {
	for _, name := range names {
		if err := gzipOne(w, h, root, name); err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
	}
	return nil
}

func gzipOne(w io.Writer, h host, root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		if !info.IsDir() {
			h.console.warn("%s is left out: it is not a regular file", name)
		}
		return nil
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	stream := gzip.NewWriter(w)
	stream.Name = name
	stream.ModTime = info.ModTime()
	if _, err := io.Copy(stream, file); err != nil {
		return err
	}
	return stream.Close()
}

// writeRaw writes the one selected file as it is.
func writeRaw(w io.Writer, _ host, root *os.Root, names []string) error {
	if len(names) != 1 {
		return fmt.Errorf("the format raw takes exactly one file, but %d are selected", len(names))
	}
	file, err := root.Open(names[0])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	_, err = io.Copy(w, file)
	return err
}
