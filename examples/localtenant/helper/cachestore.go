package main

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// cacheStore says where a cache is: always in a file, and in an object store
// if there is a URL.
type cacheStore struct {
	file, url string
	minutes   int
	cloudURL  string
	redact    bool
}

// bind adds the flags both cache commands have.
func (s *cacheStore) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.file, "file", "", "file of the archive on this machine")
	flags.StringVar(&s.url, "url", "", "signed URL of the archive in the object store")
	flags.IntVar(&s.minutes, "timeout", 10, "time limit of the transfer, in minutes")
	flags.StringVar(&s.cloudURL, "gocloud-url", "", "not supported by this stand-in")
	flags.BoolVar(&s.redact, "redact-url", false, "keep the URL out of the job log")
	acceptUnused(cmd, "env-file", "transfer-buffer-size", "chunk-size", "concurrency", "transfer-meter-frequency", "retry", "retry-time")
}

// check refuses what cannot work.
func (s *cacheStore) check() error {
	if s.file == "" {
		return errors.New("--file is missing: where the archive is on this machine")
	}
	if s.cloudURL != "" {
		return errors.New("--gocloud-url is not supported by this stand-in; give the runner a cache with signed URLs")
	}
	return nil
}

// client makes an HTTP client for the object store.
func (s *cacheStore) client() *http.Client {
	minutes := s.minutes
	if minutes <= 0 {
		minutes = 10
	}
	return &http.Client{
		Timeout: time.Duration(minutes) * time.Minute,
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
			DisableCompression:    true, // an archive is stored as it is
		},
	}
}

// hide takes a signed URL out of an error: net/http puts it in, and its query
// is as good as a password.
func (s *cacheStore) hide(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// shown is a URL as the job log may show it.
func (s *cacheStore) shown(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil || s.redact {
		return "the object store"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	return parsed.String()
}
