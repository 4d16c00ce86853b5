package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// cacheArchiver keeps files of the project folder for later jobs.
type cacheArchiver struct {
	host
	store     cacheStore
	files     selection
	alternate string
	headers   []string
	maxSize   int64
	format    string
}

func newCacheArchiver(h host) *cobra.Command {
	a := &cacheArchiver{host: h}
	cmd := &cobra.Command{
		Use:   "cache-archiver",
		Short: "Archive files for later jobs and send them to the cache's object store",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context()) },
	}
	a.store.bind(cmd)
	a.files.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.alternate, "alternate-file", "", "earlier place of the archive, used if --file is not there")
	flags.StringArrayVar(&a.headers, "header", nil, "header of the upload, as Name: value")
	flags.Int64Var(&a.maxSize, "max-uploaded-archive-size", 0, "largest archive to upload, in bytes; 0 is any")
	flags.StringVar(&a.format, "compression-format", h.getenv("CACHE_COMPRESSION_FORMAT"), "zip, whatever is given")
	acceptUnused(cmd, "check-url", "metadata", "compression-level")
	return cmd
}

func (a *cacheArchiver) run(ctx context.Context) error {
	if err := a.store.check(); err != nil {
		return err
	}
	if a.format != "" && !strings.EqualFold(a.format, "zip") {
		a.console.warn("the cache is made as zip: this stand-in does not know %q", a.format)
	}
	if err := a.adoptAlternate(); err != nil {
		a.console.warn("%v", err)
	}
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return fmt.Errorf("open the project folder: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	names, err := a.files.collect(ctx, a.host, root)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		a.console.warn("No files to cache.")
		return nil
	}
	changed, err := a.changed(root, names)
	if err != nil {
		return err
	}
	if !changed {
		a.console.info("Archive is up to date!")
		return nil
	}
	if err := a.write(root, names); err != nil {
		return err
	}
	return a.upload(ctx)
}

// path is the archive's place; the scripts give it relative to the project
// folder, and it is outside.
func (a *cacheArchiver) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// adoptAlternate uses the archive an earlier job left under another name: the
// runner hashes cache keys or not (FF_HASH_CACHE_KEYS).
func (a *cacheArchiver) adoptAlternate() error {
	from, to := a.path(a.alternate), a.path(a.store.file)
	if a.alternate == "" || from == to {
		return nil
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(from); err != nil {
		return nil // there is none
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("use the archive of an earlier job: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("use the archive of an earlier job: %w", err)
	}
	return nil
}

// changed says whether a file is newer than the archive.
func (a *cacheArchiver) changed(root *os.Root, names []string) (bool, error) {
	archive, err := os.Stat(a.path(a.store.file))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the archive: %w", err)
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err == nil && info.ModTime().After(archive.ModTime()) {
			return true, nil
		}
	}
	return false, nil
}

// write makes the archive; another job that reads it at this moment sees the
// old one or the new one.
func (a *cacheArchiver) write(root *os.Root, names []string) (err error) {
	target := a.path(a.store.file)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("make the cache's folder: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(target), "archive_")
	if err != nil {
		return fmt.Errorf("make the cache's archive: %w", err)
	}
	err = errors.Join(writeZip(file, a.host, root, names), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), target)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make the cache's archive: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// upload sends the archive to the object store if there is one.
func (a *cacheArchiver) upload(ctx context.Context) error {
	if a.store.url == "" {
		a.console.info("No URL provided: the cache is stored on this machine only.")
		return nil
	}
	info, err := os.Stat(a.path(a.store.file))
	if err != nil {
		return fmt.Errorf("look at the archive: %w", err)
	}
	if a.maxSize > 0 && info.Size() > a.maxSize {
		a.console.info("The archive has %d bytes and the limit is %d: the cache is stored on this machine only.", info.Size(), a.maxSize)
		return nil
	}
	client := a.store.client()
	a.console.info("Uploading %s to %s", filepath.Base(a.store.file), a.store.shown(a.store.url))
	return retry(ctx, a.host, func(int) error { return a.put(ctx, client, info) })
}

// put sends the archive once.
func (a *cacheArchiver) put(ctx context.Context, client *http.Client, info fs.FileInfo) error {
	file, err := os.Open(a.path(a.store.file))
	if err != nil {
		return fmt.Errorf("open the archive: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read; the client may have closed it
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, a.store.url, io.NopCloser(file))
	if err != nil {
		return fmt.Errorf("upload cache: %w", a.store.hide(err))
	}
	req.ContentLength = info.Size()
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Last-Modified", info.ModTime().UTC().Format(http.TimeFormat))
	for _, header := range a.headers {
		if key, value, found := strings.Cut(header, ":"); found {
			req.Header.Set(strings.TrimSpace(key), strings.TrimSpace(value))
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return connectionError(ctx, fmt.Errorf("upload cache: %w", a.store.hide(err)))
	}
	defer func() { _ = resp.Body.Close() }() // nothing is read from it
	if resp.StatusCode/100 != 2 {
		return statusError("upload cache", resp)
	}
	return nil
}

// modified is the time an object store gives for an archive, if it does.
func modified(resp *http.Response) (time.Time, bool) {
	t, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	return t, err == nil
}
