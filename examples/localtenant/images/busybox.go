package images

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Busybox is a layer with Debian's static busybox, a link in /bin for each of
// its applets, and the few files a minimal system has.
type Busybox struct{}

// busyboxProgram is the program, which is static, so that it needs nothing
// else of the image.
func busyboxProgram() PackageFile {
	return PackageFile{Package: "busybox-static", From: []string{"bin/busybox", "usr/bin/busybox"}, Path: "bin/busybox"}
}

// Label is busybox.
func (Busybox) Label() string { return "busybox" }

func (Busybox) inputs(ctx context.Context, w *workshop) (string, error) {
	return busyboxProgram().inputs(ctx, w)
}

func (b Busybox) fill(ctx context.Context, w *workshop, t *tree) error {
	program, err := busyboxProgram().body(ctx, w)
	if err != nil {
		return err
	}
	applets, err := appletsOf(ctx, w, program, "--list")
	if err != nil {
		return err
	}
	entries := []Entry{
		{Path: "bin", Mode: fs.ModeDir | 0o755},
		{Path: "bin/busybox", Mode: 0o755, Body: string(program)},
		{Path: "sbin", Mode: fs.ModeSymlink | 0o777, Target: "bin"},
		// Scripts say /usr/bin/env.
		{Path: "usr", Mode: fs.ModeDir | 0o755},
		{Path: "usr/bin", Mode: fs.ModeSymlink | 0o777, Target: "../bin"},
		{Path: "usr/sbin", Mode: fs.ModeSymlink | 0o777, Target: "../bin"},
		{Path: "etc", Mode: fs.ModeDir | 0o755},
		{Path: "etc/passwd", Mode: 0o644, Body: fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\njob:x:%d:%d::/home/job:/bin/sh\n", jobUser, jobUser)},
		{Path: "etc/group", Mode: 0o644, Body: fmt.Sprintf("root:x:0:\njob:x:%d:\n", jobUser)},
		{Path: "etc/nsswitch.conf", Mode: 0o644, Body: "passwd: files\ngroup: files\nhosts: files dns\n"},
		{Path: "root", Mode: fs.ModeDir | 0o700},
		{Path: "home", Mode: fs.ModeDir | 0o755},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "var", Mode: fs.ModeDir | 0o755},
		{Path: "var/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	for _, applet := range applets {
		entries = append(entries, Entry{Path: "bin/" + applet, Mode: fs.ModeSymlink | 0o777, Target: "busybox"})
	}
	return Files{Name: b.Label(), Entries: entries}.fill(ctx, w, t)
}

// appletsOf asks the program itself what it can do: its applets by --list, and
// with their places by --list-full.
func appletsOf(ctx context.Context, w *workshop, program []byte, question string) ([]string, error) {
	folder, err := os.MkdirTemp(w.store.dir, temporary)
	if err != nil {
		return nil, fmt.Errorf("make a folder to run busybox in: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "busybox")
	if err := os.WriteFile(file, program, 0o755); err != nil {
		return nil, fmt.Errorf("write busybox: %w", err)
	}
	output, err := w.run.output(ctx, "", nil, file, question)
	if err != nil {
		return nil, fmt.Errorf("list busybox's applets: %w", err)
	}
	var applets []string
	for _, applet := range strings.Fields(string(output)) {
		if applet != "busybox" {
			applets = append(applets, applet)
		}
	}
	if len(applets) == 0 {
		return nil, fmt.Errorf("busybox %s names no applet", question)
	}
	return applets, nil
}
