package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tarOf makes an archive as a package has it.
func tarOf(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		body := h.PAXRecords["body"]
		h.PAXRecords = nil
		h.Size = int64(len(body))
		h.ModTime = time.Now()
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func tarFile(name, body string, mode int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, PAXRecords: map[string]string{"body": body}}
}

// listing shows an archive as lines.
func listing(t *testing.T, r io.Reader) []string {
	t.Helper()
	var lines []string
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(fixedTime()) {
			t.Errorf("%s has time %s", h.Name, h.ModTime)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%c %o %d:%d %s %s%s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Name, h.Linkname, body)))
	}
}

func tarOfTree(t *testing.T, content *tree) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := content.writeTar(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func everything(string) bool { return true }

func TestTreeUnpacksPackages(t *testing.T) {
	content := newTree()
	for _, name := range []string{"bin", "lib"} {
		if err := content.add(Entry{Path: name, Mode: fs.ModeSymlink | 0o777, Target: "usr/" + name}); err != nil {
			t.Fatal(err)
		}
	}
	setuid := tarFile("./usr/bin/su", "su", 0o4755)
	setuid.Uid, setuid.Gid = 0, 42
	pack := tarOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./bin/", Mode: 0o755}, // meets the link
		tarFile("./bin/sh", "shell", 0o755),
		tar.Header{Typeflag: tar.TypeDir, Name: "./usr/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./usr/bin/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeLink, Name: "./usr/bin/dash", Linkname: "./bin/sh", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./lib/x.so", Linkname: "x.so.1", Mode: 0o777},
		tar.Header{Typeflag: tar.TypeDir, Name: "./tmp/", Mode: 0o1777},
		setuid,
		tarFile("./usr/share/man/man1/sh.1", "manual", 0o644),
	)
	if err := content.addTar(pack, wanted); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2 777 0:0 bin usr/bin",
		"2 777 0:0 lib usr/lib",
		"5 1777 0:0 tmp/",
		"5 755 0:0 usr/",
		"5 755 0:0 usr/bin/",
		"0 755 0:0 usr/bin/dash shell",
		"1 755 0:0 usr/bin/sh usr/bin/dash",
		"0 4755 0:42 usr/bin/su su",
		"2 777 0:0 usr/lib/x.so x.so.1",
	}
	if diff := cmp.Diff(want, listing(t, bytes.NewReader(tarOfTree(t, content)))); diff != "" {
		t.Error(diff)
	}
}

// TestTreeIsTheSameInAnyOrder: equal content, equal bytes.
func TestTreeIsTheSameInAnyOrder(t *testing.T) {
	entries := []Entry{
		{Path: "b", Mode: 0o644, Body: "b"}, {Path: "a", Mode: 0o644, Body: "a"},
		{Path: "d", Mode: fs.ModeDir | 0o755}, {Path: "d/c", Mode: fs.ModeSymlink | 0o777, Target: "../a"},
	}
	forward, backward := newTree(), newTree()
	for i := range entries {
		if err := forward.add(entries[i]); err != nil {
			t.Fatal(err)
		}
		if err := backward.add(entries[len(entries)-1-i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(tarOfTree(t, forward), tarOfTree(t, backward)) {
		t.Error("the order of adding shows in the archive")
	}
}

func TestTreePlaces(t *testing.T) {
	content := newTree()
	for _, e := range []Entry{
		{Path: "bin", Mode: fs.ModeSymlink | 0o777, Target: "usr/bin"},
		{Path: "abs", Mode: fs.ModeSymlink | 0o777, Target: "/usr/bin"},
		{Path: "up", Mode: fs.ModeSymlink | 0o777, Target: "../../../usr"},
		{Path: "loop", Mode: fs.ModeSymlink | 0o777, Target: "loop/x"},
	} {
		if err := content.add(e); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"bin/sh": "usr/bin/sh", "abs/sh": "usr/bin/sh", "up/x": "usr/x", "/etc/../x": "x", "../../x": "x", "bin": "bin",
	} {
		if got, err := content.place(name); err != nil || got != want {
			t.Errorf("place(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := content.place("loop/x"); err == nil {
		t.Error("a loop of links has a place")
	}
}

func TestTreeRefuses(t *testing.T) {
	for name, header := range map[string]tar.Header{
		"device":        {Typeflag: tar.TypeChar, Name: "null", Mode: 0o666},
		"dangling link": {Typeflag: tar.TypeLink, Name: "a", Linkname: "b"},
	} {
		if err := newTree().addTar(tarOf(t, header), everything); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := newTree().add(Entry{Path: "p", Mode: fs.ModeNamedPipe}); err == nil {
		t.Error("named pipe: accepted")
	}
	if err := newTree().addTar(strings.NewReader("no tar at all, but long enough to look like one"), everything); err == nil {
		t.Error("broken archive: accepted")
	}
}

func TestWanted(t *testing.T) {
	for name, want := range map[string]bool{
		"usr/bin/git": true, "usr/share/man": true, "usr/share/man/man1/git.1.gz": false,
		"usr/share/doc/git": true, "usr/share/doc/git/copyright": true, "usr/share/doc/git/README": false,
		"usr/share/doc/git/contrib/x": false, "usr/share/locale/de/LC_MESSAGES/git.mo": false, "usr/share/manners": true,
	} {
		if got := wanted(name); got != want {
			t.Errorf("wanted(%q) = %v", name, got)
		}
	}
}

func TestConfigure(t *testing.T) {
	content := newTree()
	for name, body := range map[string]string{
		"usr/share/base-passwd/passwd.master":      "root:*:0:0:root:/root:/bin/bash\n",
		"usr/share/base-passwd/group.master":       "root:*:0:\n",
		"usr/share/ca-certificates/mozilla/b.crt":  "B\n",
		"usr/share/ca-certificates/mozilla/a.crt":  "A\n\n",
		"usr/share/ca-certificates/mozilla/README": "no",
		"usr/bin/mawk": "mawk",
	} {
		if err := content.add(Entry{Path: name, Mode: 0o644, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := configure(content); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"etc/passwd": "root:*:0:0:root:/root:/bin/bash\njob:x:1000:1000::/home/job:/bin/sh\n",
		"etc/group":  "root:*:0:\njob:x:1000:\n",
		certificates: "A\nB\n",
	} {
		if got, _ := content.read(name); string(got) != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if n := content.nodes["usr/bin/awk"]; n == nil || n.target != "mawk" {
		t.Errorf("awk = %+v", n)
	}
	for _, name := range []string{"bin/sh", "usr/bin/which", "etc/profile"} {
		if content.has(name) {
			t.Errorf("%s is there without its package", name)
		}
	}
}
