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

	"github.com/spf13/cobra"
)

// cacheExtractor brings back what an earlier job cached. That there is nothing
// is a warning with exit code 1: the script then tries the next key.
type cacheExtractor struct {
	host
	store        cacheStore
	alternateURL string
}

func newCacheExtractor(h host) *cobra.Command {
	e := &cacheExtractor{host: h}
	cmd := &cobra.Command{
		Use:   "cache-extractor",
		Short: "Get the archive of an earlier job from the cache and unpack it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context()) },
	}
	e.store.bind(cmd)
	cmd.Flags().StringVar(&e.alternateURL, "alternate-url", "", "signed URL to use if there is nothing at --url")
	acceptUnused(cmd, "head-url", "alternate-head-url", "alternate-gocloud-url")
	return cmd
}

func (e *cacheExtractor) run(ctx context.Context) error {
	if err := e.store.check(); err != nil {
		return err
	}
	file := e.store.file
	if !filepath.IsAbs(file) {
		file = filepath.Join(e.dir, file)
	}
	if e.store.url == "" {
		e.console.info("No URL provided: the cache is taken from this machine.")
	} else if err := e.fetch(ctx, file); err != nil {
		return mild("%w", err)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return mild("there is no cache yet: %s does not exist", e.store.file)
	}
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return fmt.Errorf("open the project folder: %w", err)
	}
	defer func() { _ = root.Close() }() // a folder has nothing to flush
	return unzip(e.host, root, file)
}

// fetch gets the archive from the object store unless the one here is as new.
func (e *cacheExtractor) fetch(ctx context.Context, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the cache's folder: %w", err)
	}
	client := e.store.client()
	err := retry(ctx, e.host, func(int) error { return e.get(ctx, client, e.store.url, file) })
	if errors.Is(err, errNoCache) && e.alternateURL != "" {
		err = retry(ctx, e.host, func(int) error { return e.get(ctx, client, e.alternateURL, file) })
	}
	return err
}

// errNoCache is an object store without this archive.
var errNoCache = errors.New("there is no cache yet: the object store does not have it")

// get makes the request once.
func (e *cacheExtractor) get(ctx context.Context, client *http.Client, from, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return fmt.Errorf("download cache: %w", e.store.hide(err))
	}
	resp, err := client.Do(req)
	if err != nil {
		return connectionError(ctx, fmt.Errorf("download cache: %w", e.store.hide(err)))
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return errNoCache
	case resp.StatusCode != http.StatusOK:
		return statusError("download cache", resp)
	}
	if local, err := os.Stat(file); err == nil {
		if t, known := modified(resp); known && !t.After(local.ModTime()) {
			e.console.info("%s is up to date", filepath.Base(file))
			return nil
		}
	}
	e.console.info("Downloading %s from %s", filepath.Base(file), e.store.shown(from))
	return e.save(ctx, resp, file)
}

// save puts the archive in its place once it is complete.
func (e *cacheExtractor) save(ctx context.Context, resp *http.Response, file string) (err error) {
	part, err := os.CreateTemp(filepath.Dir(file), "cache_")
	if err != nil {
		return fmt.Errorf("write the cache's archive: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part.Name()) // the first error says more
		}
	}()
	_, err = io.Copy(part, resp.Body)
	if closeErr := part.Close(); closeErr != nil {
		return fmt.Errorf("write the cache's archive: %w", closeErr)
	}
	if err != nil {
		return connectionError(ctx, fmt.Errorf("download cache: %w", err))
	}
	if t, known := modified(resp); known {
		if err := os.Chtimes(part.Name(), t, t); err != nil {
			return fmt.Errorf("write the cache's archive: %w", err)
		}
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return fmt.Errorf("write the cache's archive: %w", err)
	}
	return nil
}
