package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the content of a layer while it is put together. It is kept in
// memory (the largest is about 100 MB), so that owners and modes need neither
// root nor a file system that can hold them.
type tree struct {
	nodes map[string]*node // by clean path without leading slash
}

// node is one entry. Two paths with the same node are hard links.
type node struct {
	mode     fs.FileMode
	uid, gid int
	target   string // of a symbolic link
	body     []byte
}

func newTree() *tree { return &tree{nodes: map[string]*node{}} }

// add puts one entry in.
func (t *tree) add(e Entry) error {
	switch e.Mode.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
	default:
		return fmt.Errorf("entry %q: type %s is not supported", e.Path, e.Mode.Type())
	}
	return t.put(e.Path, &node{mode: e.Mode, uid: e.UID, gid: e.GID, target: e.Target, body: []byte(e.Body)})
}

// put stores n under name, seen through the symbolic links that are there
// already: with bin a link to usr/bin, bin/sh is stored as usr/bin/sh.
func (t *tree) put(name string, n *node) error {
	place, err := t.place(name)
	if err != nil {
		return err
	}
	if place == "." {
		return nil // the root folder itself needs no entry
	}
	if old := t.nodes[place]; old != nil && n.mode.IsDir() && old.mode&fs.ModeSymlink != 0 {
		// A package's folder /bin meets the link /bin -> usr/bin: the link
		// stays, as dpkg keeps it.
		return nil
	}
	t.nodes[place] = n
	return nil
}

// place is the path of name with links in its parents followed.
func (t *tree) place(name string) (string, error) {
	const tooMany = 40 // as Linux allows, path_resolution(7)
	clean := clean(name)
	for range tooMany {
		link, rest := t.firstLink(clean)
		if link == "" {
			return clean, nil
		}
		target := t.nodes[link].target
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		clean = cleanJoin(target, rest)
	}
	return "", fmt.Errorf("path %q: too many symbolic links", name)
}

// firstLink finds the first parent of name that is a link, and what follows it.
func (t *tree) firstLink(name string) (link, rest string) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if n := t.nodes[name[:i]]; n != nil && n.mode&fs.ModeSymlink != 0 {
			return name[:i], name[i+1:]
		}
	}
	return "", ""
}

// clean makes a path relative to the image's root; it cannot leave the root.
func clean(name string) string {
	rel := strings.TrimPrefix(filepath.Clean("/"+name), "/")
	if rel == "" {
		return "."
	}
	return rel
}

func cleanJoin(parts ...string) string { return clean(filepath.Join(parts...)) }

// read returns the content of a file and whether it is there.
func (t *tree) read(name string) ([]byte, bool) {
	place, err := t.place(name)
	if err != nil {
		return nil, false
	}
	n := t.nodes[place]
	if n == nil || !n.mode.IsRegular() {
		return nil, false
	}
	return n.body, true
}

// has says whether there is an entry of any kind.
func (t *tree) has(name string) bool {
	place, err := t.place(name)
	return err == nil && t.nodes[place] != nil
}

// under returns the paths of the files below a folder whose name ends with
// suffix, sorted.
func (t *tree) under(folder, suffix string) []string {
	var found []string
	for name, n := range t.nodes {
		if n.mode.IsRegular() && strings.HasPrefix(name, folder+"/") && strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// addTar puts the entries of a tar stream in that keep wants.
func (t *tree) addTar(r io.Reader, keep func(name string) bool) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if !keep(clean(header.Name)) {
			continue
		}
		if err := t.addHeader(header, archive); err != nil {
			return err
		}
	}
}

func (t *tree) addHeader(header *tar.Header, body io.Reader) error {
	n := &node{mode: header.FileInfo().Mode(), uid: header.Uid, gid: header.Gid}
	switch header.Typeflag {
	case tar.TypeDir:
	case tar.TypeSymlink:
		n.target = header.Linkname
	case tar.TypeLink:
		place, err := t.place(header.Linkname)
		if err != nil {
			return err
		}
		if n = t.nodes[place]; n == nil {
			return fmt.Errorf("archive entry %s is a link to %s, which is not there", header.Name, header.Linkname)
		}
	case tar.TypeReg:
		content, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("read %s from archive: %w", header.Name, err)
		}
		n.body = content
	default:
		return fmt.Errorf("archive entry %s: type %q is not supported", header.Name, header.Typeflag)
	}
	return t.put(header.Name, n)
}

// writeTar writes the tree in path order with fixed times.
func (t *tree) writeTar(w io.Writer) error {
	archive := tar.NewWriter(w)
	first := map[*node]string{}
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[name]
		header, err := n.header(name)
		if err != nil {
			return err
		}
		if earlier, linked := first[n]; linked {
			header.Typeflag, header.Linkname, header.Size = tar.TypeLink, earlier, 0
		} else if n.mode.IsRegular() {
			first[n] = name
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s to layer: %w", name, err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := archive.Write(n.body); err != nil {
				return fmt.Errorf("write %s to layer: %w", name, err)
			}
		}
	}
	return archive.Close()
}

func (n *node) header(name string) (*tar.Header, error) {
	// tar's own mode bits are set by FileInfoHeader, setuid and sticky too.
	header, err := tar.FileInfoHeader(nodeInfo{name: name, node: n}, n.target)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", name, err)
	}
	header.Name = name
	if n.mode.IsDir() {
		header.Name += "/"
	}
	header.Uid, header.Gid = n.uid, n.gid
	return header, nil
}
