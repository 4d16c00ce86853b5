package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/dispatch"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/gitlab"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/pipeline"
)

// source is what the flags say about the pipeline's surroundings. They are
// the same for all verbs.
type source struct {
	repo, project        string
	listen, url          string
	cacheStore           string
	registry             string
	registryUser         string
	registryPasswordFile string
	jobID                int64
	variables            []string
}

func (o *source) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.repo, "repo", "", "folder whose Git repository the jobs check out (default: the pipeline file's)")
	f.StringVar(&o.project, "project", "root/demo", "path of the project in GitLab")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to serve repository and artifacts at, without TLS; Pods must be able to reach it")
	f.StringVar(&o.url, "url", "", "address of the server as the jobs see it (default: from --listen)")
	f.StringVar(&o.cacheStore, "cache-store", "", "folder to keep caches in between runs (default: only in the driver's cache_dir)")
	f.StringVar(&o.registry, "registry", "", "HOST[:PORT] of a registry that the jobs get credentials for")
	f.StringVar(&o.registryUser, "registry-user", "", "user of --registry (default gitlab-ci-token)")
	f.StringVar(&o.registryPasswordFile, "registry-password-file", "", "file with the password for --registry (default: the job token)")
	f.StringArrayVar(&o.variables, "variable", nil, "KEY=VALUE for all jobs; counts before the same key in the file; may be repeated")
	f.Int64Var(&o.jobID, "job-id", 0, "id of the first job (default: from the time of day)")
}

// session is a pipeline file with a running server for its jobs.
type session struct {
	project *dispatch.Project
	server  *gitlab.Server
	firstID int64
	close   func() error
}

// open reads the pipeline file, copies the repository and starts the server.
func (o *source) open(ctx context.Context, file string, now time.Time) (_ *session, err error) {
	p, err := pipeline.Load(file)
	if err != nil {
		return nil, err
	}
	extra, err := o.readVariables()
	if err != nil {
		return nil, err
	}
	registry, err := o.readRegistry()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "localrunner")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	// Milliseconds make ids that rise from run to run and differ between runs.
	s := &session{firstID: o.jobID}
	if s.firstID == 0 {
		s.firstID = now.UnixMilli()
	}
	repo := o.repo
	if repo == "" {
		repo = filepath.Dir(file)
	}
	if repo, err = filepath.Abs(repo); err != nil {
		return nil, err
	}
	copied, err := gitlab.CopyRepository(ctx, filepath.Join(dir, "repositories"), o.project, repo, s.firstID)
	if err != nil {
		return nil, err
	}
	cache := o.cacheStore
	if cache != "" {
		if cache, err = filepath.Abs(cache); err != nil {
			return nil, err
		}
	}
	if s.server, err = gitlab.New(dir, copied, cache); err != nil {
		return nil, err
	}
	listener, address, err := o.serve(s.server)
	if err != nil {
		return nil, err
	}
	s.close = func() error { return errors.Join(listener.Close(), os.RemoveAll(dir)) }
	s.project = &dispatch.Project{
		Pipeline: p, PipelineID: s.firstID, Repository: copied, URL: address,
		Registry: registry, Variables: extra, Artifacts: s.server.Artifacts,
	}
	return s, nil
}

func (o *source) readVariables() (job.Variables, error) {
	var vars job.Variables
	for _, v := range o.variables {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--variable %q: want KEY=VALUE", v)
		}
		vars = append(vars, job.Variable{Key: key, Value: value, Public: true})
	}
	return vars, nil
}

func (o *source) readRegistry() (*dispatch.Registry, error) {
	if o.registry == "" {
		if o.registryUser != "" || o.registryPasswordFile != "" {
			return nil, errors.New("--registry-user and --registry-password-file need --registry")
		}
		return nil, nil
	}
	r := &dispatch.Registry{Host: o.registry, User: o.registryUser}
	if o.registryPasswordFile != "" {
		data, err := os.ReadFile(o.registryPasswordFile)
		if err != nil {
			return nil, fmt.Errorf("reading the registry's password: %w", err)
		}
		r.Password = strings.TrimRight(string(data), "\r\n")
	}
	return r, nil
}

// serve starts the server and returns its address as the jobs see it.
func (o *source) serve(handler http.Handler) (*http.Server, *url.URL, error) {
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen: %w", err)
	}
	address, err := o.address(listener.Addr())
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with session.close
	return server, address, nil
}

func (o *source) address(addr net.Addr) (*url.URL, error) {
	if o.url != "" {
		u, err := url.Parse(o.url)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("--url %q: want an address such as http://10.0.0.1:8080", o.url)
		}
		return u, nil
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("--listen %s: with all addresses, say with --url at which one the jobs reach it", o.listen)
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}, nil
}

// cacheURL returns the address of a cache key, or nothing without a store.
func (s *session) cacheURL(key string) string {
	p := s.server.CachePath(key)
	if p == "" {
		return ""
	}
	u := *s.project.URL
	u.Path = strings.TrimSuffix(u.Path, "/") + p
	return u.String()
}
