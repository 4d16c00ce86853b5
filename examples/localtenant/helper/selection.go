package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"
)

// errOutside is a path that leads out of the project folder.
var errOutside = errors.New("it is outside the project folder")

// selection says which files of the project folder are meant.
type selection struct {
	paths, exclude []string
	untracked      bool
}

// bind adds the flags.
func (s *selection) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&s.paths, "path", nil, "file, folder or pattern with * and **")
	flags.StringArrayVar(&s.exclude, "exclude", nil, "pattern of files to leave out")
	flags.BoolVar(&s.untracked, "untracked", false, "add files that git does not track")
	acceptUnusedSwitches(cmd, "verbose")
}

// collector finds the files of a selection.
type collector struct {
	host
	root     *os.Root
	exclude  map[string]string // cleaned pattern → as written
	excluded map[string]int
	found    map[string]bool
}

// collect returns the selected paths, relative to the project folder, sorted.
// What cannot be used is reported and left out.
func (s *selection) collect(ctx context.Context, h host, root *os.Root) ([]string, error) {
	c := &collector{host: h, root: root, exclude: map[string]string{}, excluded: map[string]int{}, found: map[string]bool{}}
	for _, pattern := range h.expand("exclude pattern", s.exclude...) {
		relative, err := c.relative(pattern)
		if err == nil && !doublestar.ValidatePattern(relative) {
			err = doublestar.ErrBadPattern
		}
		if err != nil {
			h.console.warn("--exclude %q is ignored: %v", pattern, err)
			continue
		}
		c.exclude[relative] = pattern
	}
	for _, pattern := range h.expand("path", s.paths...) {
		if err := c.addPattern(ctx, pattern); err != nil {
			return nil, err
		}
	}
	if s.untracked {
		if err := c.addUntracked(ctx); err != nil {
			return nil, err
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.excluded)) {
		h.console.info("%s: excluded %d files", pattern, c.excluded[pattern])
	}
	return slices.Sorted(maps.Keys(c.found)), nil
}

// relative makes a path or pattern relative to the project folder, or refuses
// it.
func (c *collector) relative(pattern string) (string, error) {
	base, rest := filepath.Clean(pattern), ""
	if isPattern(pattern) {
		base, rest = doublestar.SplitPattern(pattern)
	}
	if !filepath.IsAbs(base) {
		base = filepath.Join(c.dir, base)
	}
	relative, err := filepath.Rel(c.dir, base)
	if err != nil {
		return "", errOutside
	}
	// The pattern's own part may climb as well: a*/../../b.
	relative = path.Join(relative, rest)
	if !filepath.IsLocal(relative) {
		return "", errOutside
	}
	return relative, nil
}

func isPattern(text string) bool { return strings.ContainsAny(text, "*?[{") }

// addPattern adds what a --path stands for. The error is the end of ctx alone.
func (c *collector) addPattern(ctx context.Context, pattern string) error {
	if pattern == "" {
		c.console.warn("an empty path matches nothing")
		return nil
	}
	relative, err := c.relative(pattern)
	if err != nil {
		c.console.warn("%s is ignored: %v", pattern, err)
		return nil
	}
	matches := []string{relative}
	if isPattern(relative) {
		// Without following links: a link to a parent folder has no end.
		matches, err = doublestar.Glob(c.root.FS(), relative, doublestar.WithNoFollow())
		if err != nil {
			c.console.warn("%s is ignored: %v", pattern, err)
			return nil
		}
	}
	count := 0
	for _, match := range matches {
		n, err := c.addTree(ctx, match)
		count += n
		if err != nil {
			return err
		}
	}
	if count == 0 {
		c.console.warn("%s: no matching files (paths are relative to %s)", pattern, c.dir)
	} else {
		c.console.info("%s: found %d matching files and folders", pattern, count)
	}
	return nil
}

// addTree adds a path and, if it is a folder, what is in it; it returns how
// many. The error is the end of ctx alone.
func (c *collector) addTree(ctx context.Context, name string) (int, error) {
	info, err := c.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		c.console.warn("%s is left out: %v", name, err)
		return 0, nil
	}
	if !info.IsDir() {
		return c.add(name), nil
	}
	count := 0
	err = fs.WalkDir(c.root.FS(), name, func(name string, _ fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.console.warn("%s is left out: %v", name, err)
			return nil
		}
		count += c.add(name)
		return nil
	})
	return count, err
}

// add adds one path unless it is excluded.
func (c *collector) add(name string) int {
	if name == "." {
		return 0
	}
	for pattern, written := range c.exclude {
		if doublestar.MatchUnvalidated(pattern, name) {
			c.excluded[written]++
			return 0
		}
	}
	if !c.found[".git"] && (name == ".git" || strings.HasPrefix(name, ".git/")) {
		c.console.warn("%s: part of git's own folder is selected, which may break the repository it is unpacked into", name)
	}
	c.found[name] = true
	return 1
}

// addUntracked adds what git does not track.
func (c *collector) addUntracked(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "--others", "-z")
	cmd.Dir = c.dir
	cmd.Stderr = c.console.out
	output, err := cmd.Output()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.console.warn("untracked files are left out: %v", fmt.Errorf("git ls-files: %w", err))
		return nil
	}
	count := 0
	for name := range strings.SplitSeq(string(output), "\x00") {
		if name == "" {
			continue
		}
		// A repository inside the project is listed as a folder.
		n, err := c.addTree(ctx, path.Clean(name))
		count += n
		if err != nil {
			return err
		}
	}
	if count == 0 {
		c.console.warn("untracked: no files")
	} else {
		c.console.info("untracked: found %d files", count)
	}
	return nil
}
