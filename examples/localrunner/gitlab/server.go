// Package gitlab is the part of a GitLab server that a running job talks to:
// the repository over smart HTTP, the artifacts API, and an object store for
// caches. Everything is kept in one folder.
package gitlab

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Server answers the requests of jobs. Each job proves itself by its token.
type Server struct {
	dir   string
	repo  *Repository
	cache string
	// store is a part of the cache addresses that nobody can guess: as with a
	// pre-signed URL, who knows the address has the right.
	store string

	mu     sync.Mutex
	tokens map[int64]string
	routes http.Handler
}

// New returns a server for the repository. It keeps artifacts below dir, and
// caches in the folder cache, or nowhere when that is empty.
func New(dir string, repo *Repository, cache string) (*Server, error) {
	s := &Server{dir: dir, repo: repo, cache: cache, store: rand.Text(), tokens: map[int64]string{}}
	git, err := repo.handler()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(repo.URLPath()+"/", s.gitAuth(git))
	mux.HandleFunc("POST /api/v4/jobs/{id}/artifacts", s.withJob(s.putArtifacts))
	mux.HandleFunc("GET /api/v4/jobs/{id}/artifacts", s.withJob(s.getArtifacts))
	if cache != "" {
		mux.HandleFunc("GET /cache/{store}/{key...}", s.withStore(s.getCache))
		mux.HandleFunc("PUT /cache/{store}/{key...}", s.withStore(s.putCache))
	}
	s.routes = mux
	return s, nil
}

// ServeHTTP makes the server an http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.routes.ServeHTTP(w, r)
}

// NewToken makes a token for the job and lets it in.
func (s *Server) NewToken(id int64) string {
	token := "glcbt-64_" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[id] = token
	return token
}

// jobOf returns the id of the job that the token belongs to.
func (s *Server) jobOf(token string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.tokens {
		if subtle.ConstantTimeCompare([]byte(t), []byte(token)) == 1 {
			return id, true
		}
	}
	return 0, false
}

// gitAuth lets jobs read the repository.
func (s *Server) gitAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if _, ok := s.jobOf(password); !ok || user != "gitlab-ci-token" {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitLab"`)
			http.Error(w, "HTTP Basic: Access denied. Use gitlab-ci-token and the job token.", http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack" {
			http.Error(w, "You are not allowed to push code to this project.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// withJob checks the token of an API request. A job may read the artifacts of
// another job with that job's token, which its dependencies carry.
func (s *Server) withJob(next func(http.ResponseWriter, *http.Request, int64)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			http.Error(w, "404 Not Found", http.StatusNotFound)
			return
		}
		token := r.Header.Get("JOB-TOKEN")
		if token == "" {
			token = r.URL.Query().Get("token")
		}
		if job, ok := s.jobOf(token); !ok || job != id {
			http.Error(w, "403 Forbidden", http.StatusForbidden)
			return
		}
		next(w, r, id)
	}
}

func (s *Server) withStore(next func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.PathValue("key")
		if r.PathValue("store") != s.store || !filepath.IsLocal(key) {
			http.Error(w, "403 Forbidden", http.StatusForbidden)
			return
		}
		next(w, r, filepath.Join(s.cache, key, "cache.zip"))
	}
}

// CachePath is the path of the address of a cache key, or "" when caches are
// not kept.
func (s *Server) CachePath(key string) string {
	if s.cache == "" {
		return ""
	}
	return "/cache/" + s.store + "/" + key
}

func (s *Server) getCache(w http.ResponseWriter, r *http.Request, file string) {
	serveFile(w, r, file)
}

func (s *Server) putCache(w http.ResponseWriter, r *http.Request, file string) {
	if err := save(file, r.Body); err != nil {
		http.Error(w, "keeping the cache: "+err.Error(), http.StatusInternalServerError)
	}
}

func serveFile(w http.ResponseWriter, r *http.Request, file string) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		http.Error(w, "404 Not Found", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", filepath.Base(file)))
	http.ServeContent(w, r, "", info.ModTime(), f)
}
