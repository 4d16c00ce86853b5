package images

import (
	"context"
	"io/fs"
	"path"
	"slices"
)

// Alpine is a layer with Debian's static busybox in the layout of Alpine
// Linux: every applet at the place busybox has for it, in four folders that are
// not links, sh is ash, there is no bash, and none of Debian's files. It has no
// musl and no apk.
type Alpine struct{}

// Label is Alpine's layout.
func (Alpine) Label() string { return "busybox in Alpine's layout" }

func (Alpine) inputs(ctx context.Context, w *workshop) (string, error) {
	return busyboxProgram().inputs(ctx, w)
}

func (a Alpine) fill(ctx context.Context, w *workshop, t *tree) error {
	program, err := busyboxProgram().body(ctx, w)
	if err != nil {
		return err
	}
	applets, err := appletsOf(ctx, w, program, "--list-full")
	if err != nil {
		return err
	}
	entries := slices.Concat(alpineFolders(), alpineFiles(), []Entry{{Path: "bin/busybox", Mode: 0o755, Body: string(program)}})
	for _, applet := range applets {
		if path.Dir(applet) == "." || applet == "bin/busybox" {
			continue // linuxrc, in the root folder, is for a system's start
		}
		entries = append(entries, Entry{Path: applet, Mode: fs.ModeSymlink | 0o777, Target: "/bin/busybox"})
	}
	return Files{Name: a.Label(), Entries: entries}.fill(ctx, w, t)
}

func alpineFolders() []Entry {
	var entries []Entry
	for _, name := range []string{
		"bin", "etc", "home", "lib", "media", "mnt", "opt", "run", "sbin", "srv",
		"usr", "usr/bin", "usr/lib", "usr/local", "usr/local/bin", "usr/sbin", "usr/share",
		"var", "var/cache", "var/lib", "var/log", "var/spool",
	} {
		entries = append(entries, Entry{Path: name, Mode: fs.ModeDir | 0o755})
	}
	return append(entries,
		Entry{Path: "root", Mode: fs.ModeDir | 0o700},
		Entry{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		Entry{Path: "var/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		Entry{Path: "var/run", Mode: fs.ModeSymlink | 0o777, Target: "../run"},
	)
}

func alpineFiles() []Entry {
	file := func(name, body string) Entry { return Entry{Path: name, Mode: 0o644, Body: body} }
	return []Entry{
		file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nbin:x:1:1:bin:/bin:/sbin/nologin\n"+
			"guest:x:405:100:guest:/dev/null:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"),
		file("etc/group", "root:x:0:root\nbin:x:1:root,bin\nusers:x:100:\nnogroup:x:65533:\nnobody:x:65534:\n"),
		file("etc/shells", "/bin/sh\n/bin/ash\n"),
		file("etc/profile", "export PATH=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\nexport PAGER=less\numask 022\n"),
		file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
		file("etc/os-release", "NAME=\"Alpine-like (busybox of Debian)\"\nID=alpine-like\nID_LIKE=alpine\n"),
	}
}
