package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"time"

	"github.com/spf13/cobra"
)

// artifactsUploader sends files of the project folder to GitLab.
type artifactsUploader struct {
	host
	server gitlab
	files  selection

	name, expireIn, format, kind string
	timeout, headerTimeout       time.Duration
	metadata                     bool
}

func newArtifactsUploader(h host) *cobra.Command {
	u := &artifactsUploader{host: h}
	cmd := &cobra.Command{
		Use:   "artifacts-uploader",
		Short: "Archive files and send them to GitLab as artifacts of a job",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return u.run(cmd.Context()) },
	}
	u.server.bind(cmd, h)
	u.files.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&u.name, "name", "artifacts", "name of the archive, without its ending")
	flags.StringVar(&u.expireIn, "expire-in", "", "when GitLab may delete the artifacts")
	flags.StringVar(&u.format, "artifact-format", "", "zip, gzip or raw")
	flags.StringVar(&u.kind, "artifact-type", "", "kind of artifacts, such as archive or junit")
	flags.DurationVar(&u.timeout, "timeout", time.Hour, "time limit of the upload")
	flags.DurationVar(&u.headerTimeout, "response-header-timeout", 10*time.Minute, "time limit for GitLab's answer after the upload")
	flags.BoolVar(&u.metadata, "generate-artifacts-metadata", false, "not made by this stand-in")
	acceptUnused(cmd, "compression-level", "transfer-meter-frequency", "runner-id", "repo-url", "repo-digest", "job-name",
		"executor-name", "runner-name", "metadata-parameter", "started-at", "ended-at", "schema-version")
	acceptUnusedSwitches(cmd, "ci-debug-trace")
	return cmd
}

// archiveFormat writes names of the project folder in one of GitLab's formats.
type archiveFormat struct {
	ending string
	write  func(w io.Writer, h host, root *os.Root, names []string) error
}

func formatOf(name string) (archiveFormat, error) {
	switch name {
	case "", "zip":
		return archiveFormat{".zip", writeZip}, nil
	case "gzip":
		return archiveFormat{".gz", writeGzip}, nil
	case "raw":
		return archiveFormat{"", writeRaw}, nil
	}
	return archiveFormat{}, fmt.Errorf("--artifact-format %q is not known to this stand-in; it has zip, gzip and raw", name)
}

func (u *artifactsUploader) run(ctx context.Context) error {
	if err := u.server.check(); err != nil {
		return err
	}
	format, err := formatOf(u.format)
	if err != nil {
		return err
	}
	if u.metadata {
		u.console.warn("no statement about the artifacts is made: this stand-in cannot")
	}
	root, err := os.OpenRoot(u.dir)
	if err != nil {
		return fmt.Errorf("open the project folder: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	names, err := u.files.collect(ctx, u.host, root)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		// Not the job's failure: artifacts of a job that made none are none.
		u.console.error("No files to upload")
		return nil
	}
	client, err := u.server.client(u.timeout, u.headerTimeout)
	if err != nil {
		return err
	}
	return retry(ctx, u.host, func(int) error {
		return u.upload(ctx, client, u.fileName(format), func(w io.Writer) error {
			return format.write(w, u.host, root, names)
		})
	})
}

// fileName is the name the archive has in GitLab.
func (u *artifactsUploader) fileName(format archiveFormat) string {
	name := path.Base(u.expand("artifact name", u.name)[0])
	if name == "." || name == "/" {
		name = "default"
	}
	return name + format.ending
}

// upload sends the archive once. It is made while it is sent, so its size does
// not matter, and made again for the next try.
func (u *artifactsUploader) upload(ctx context.Context, client *http.Client, fileName string, write func(io.Writer) error) error {
	body, pipe := io.Pipe()
	form := multipart.NewWriter(pipe)
	req, err := u.server.request(ctx, http.MethodPost, u.query(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	written := make(chan error, 1)
	go func() {
		err := writeForm(form, fileName, write)
		written <- err
		_ = pipe.CloseWithError(err) // always nil, by its contract
	}()
	resp, err := client.Do(req)
	// A writer that still waits for a reader ends here, with ErrClosedPipe.
	_ = body.Close()
	// A broken archive is why the request failed, and it will stay broken.
	if writeErr := <-written; writeErr != nil && !errors.Is(writeErr, io.ErrClosedPipe) {
		return errors.Join(writeErr, closeAnswer(resp))
	}
	if err != nil {
		return connectionError(ctx, fmt.Errorf("upload artifacts: %w", err))
	}
	return errors.Join(u.judge(resp), closeAnswer(resp))
}

func closeAnswer(resp *http.Response) error {
	if resp == nil {
		return nil
	}
	return resp.Body.Close()
}

// query holds what GitLab has to know besides the file.
func (u *artifactsUploader) query() url.Values {
	query := url.Values{}
	for key, value := range map[string]string{
		"expire_in": u.expireIn, "artifact_format": u.format, "artifact_type": u.kind,
	} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return query
}

// writeForm writes the multipart form GitLab takes: one file in a field of
// that name.
func writeForm(form *multipart.Writer, fileName string, write func(io.Writer) error) error {
	field, err := form.CreateFormFile("file", fileName)
	if err != nil {
		return err
	}
	if err := write(field); err != nil {
		return err
	}
	return form.Close()
}

// judge decides what GitLab's answer means.
func (u *artifactsUploader) judge(resp *http.Response) error {
	what := "Uploading artifacts"
	if u.kind != "" {
		what = fmt.Sprintf("Uploading artifacts as %q", u.kind)
	}
	switch resp.StatusCode {
	case http.StatusCreated:
		u.console.info("%s for job %d: %s", what, u.server.id, resp.Status)
		return nil
	case http.StatusTemporaryRedirect:
		location, err := resp.Location()
		if err != nil {
			return fmt.Errorf("%s: redirected to nowhere: %w", what, err)
		}
		u.server.url = location.Scheme + "://" + location.Host
		return &retryableError{err: fmt.Errorf("%s: GitLab has moved to %s", what, u.server.url)}
	case http.StatusForbidden:
		return fmt.Errorf("%s: not allowed: %s", what, reasonOf(resp))
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%s: the archive is larger than GitLab allows: %s", what, reasonOf(resp))
	default:
		// Like the real program: any other answer may be a proxy's.
		return &retryableError{
			err:  fmt.Errorf("%s: %s", what, reasonOf(resp)),
			busy: resp.StatusCode == http.StatusServiceUnavailable,
		}
	}
}
