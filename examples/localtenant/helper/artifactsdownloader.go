package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// artifactsDownloader gets the artifacts of another job into the project
// folder.
type artifactsDownloader struct {
	host
	server  gitlab
	direct  bool
	staging string
}

func newArtifactsDownloader(h host) *cobra.Command {
	d := &artifactsDownloader{host: h}
	cmd := &cobra.Command{
		Use:   "artifacts-downloader",
		Short: "Get the artifacts of a job from GitLab and unpack them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	d.server.bind(cmd, h)
	cmd.Flags().BoolVar(&d.direct, "direct-download", h.flag("FF_USE_DIRECT_DOWNLOAD"), "let GitLab redirect to its object store")
	cmd.Flags().StringVar(&d.staging, "archiver-staging-dir", h.getenv("ARCHIVER_STAGING_DIR"), "folder for the archive while it is unpacked")
	acceptUnused(cmd, "transfer-meter-frequency", "retry", "retry-time")
	return cmd
}

func (d *artifactsDownloader) run(ctx context.Context) error {
	if err := d.server.check(); err != nil {
		return err
	}
	client, err := d.server.client(time.Hour, 10*time.Minute)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return fmt.Errorf("open the project folder: %w", err)
	}
	defer func() { _ = root.Close() }() // a folder has nothing to flush
	file, err := os.CreateTemp(d.staging, "artifacts-")
	if err != nil {
		return fmt.Errorf("make a file for the archive: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	err = retry(ctx, d.host, func(attempt int) error { return d.download(ctx, client, file, attempt) })
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return unzip(d.host, root, file.Name())
}

// download gets the archive once.
func (d *artifactsDownloader) download(ctx context.Context, client *http.Client, file *os.File, attempt int) error {
	query := url.Values{}
	// An object store that cannot be reached must not be asked again.
	if d.direct && attempt == 0 {
		query.Set("direct_download", "true")
	}
	req, err := d.server.request(ctx, http.MethodGet, query, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return connectionError(ctx, fmt.Errorf("download artifacts: %w", err))
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fmt.Errorf("job %d has no artifacts, or they have expired: %s", d.server.id, reasonOf(resp))
	case http.StatusForbidden, http.StatusUnauthorized:
		return fmt.Errorf("download artifacts of job %d: not allowed: %s", d.server.id, reasonOf(resp))
	default:
		return &retryableError{err: fmt.Errorf("download artifacts of job %d: %s", d.server.id, reasonOf(resp))}
	}
	// An earlier try may have left a part.
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if _, err := io.Copy(io.NewOffsetWriter(file, 0), resp.Body); err != nil {
		return connectionError(ctx, fmt.Errorf("download artifacts: %w", err))
	}
	d.console.info("Downloading artifacts of job %d: %s", d.server.id, resp.Status)
	return nil
}
