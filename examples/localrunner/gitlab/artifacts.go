package gitlab

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Archive is the artifacts archive of a job.
type Archive struct {
	// Filename is the name the job gave it, such as "artifacts.zip".
	Filename string
	Size     int64
	// Path is where it is kept.
	Path string
}

// ErrNoArtifacts means that the job has left no archive.
var ErrNoArtifacts = errors.New("the job has no artifacts")

// Artifacts returns the archive of a job, or ErrNoArtifacts.
func (s *Server) Artifacts(id int64) (Archive, error) {
	dir := s.artifactsDir(id)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return Archive{}, ErrNoArtifacts
	}
	if err != nil {
		return Archive{}, fmt.Errorf("looking for the artifacts of job %d: %w", id, err)
	}
	info, err := entries[0].Info()
	if err != nil {
		return Archive{}, fmt.Errorf("looking for the artifacts of job %d: %w", id, err)
	}
	return Archive{Filename: info.Name(), Size: info.Size(), Path: filepath.Join(dir, info.Name())}, nil
}

func (s *Server) artifactsDir(id int64) string {
	return filepath.Join(s.dir, "artifacts", strconv.FormatInt(id, 10))
}

// putArtifacts takes the archive of a job: the part "file" of a form. Other
// kinds of artifacts, such as metadata and reports, are taken and dropped.
func (s *Server) putArtifacts(w http.ResponseWriter, r *http.Request, id int64) {
	form, err := r.MultipartReader()
	if err != nil {
		http.Error(w, "400 Bad request: "+err.Error(), http.StatusBadRequest)
		return
	}
	kind := r.URL.Query().Get("artifact_type")
	stored := false
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			http.Error(w, "400 Bad request: "+err.Error(), http.StatusBadRequest)
			return
		}
		if part.FormName() != "file" {
			continue
		}
		stored = true
		if kind != "" && kind != "archive" {
			continue
		}
		if err := s.keep(id, part.FileName(), part); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if !stored {
		http.Error(w, "400 Bad request: no file in the form", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintln(w, `{"message":"201 Created"}`) // the client may be gone
}

// keep stores an archive in place of the job's earlier one.
func (s *Server) keep(id int64, name string, from io.Reader) error {
	name = filepath.Base(filepath.Clean("/" + name))
	if name == "/" || strings.HasPrefix(name, ".") {
		name = "artifacts.zip"
	}
	dir := s.artifactsDir(id)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing an earlier archive: %w", err)
	}
	return save(filepath.Join(dir, name), from)
}

func (s *Server) getArtifacts(w http.ResponseWriter, r *http.Request, id int64) {
	archive, err := s.Artifacts(id)
	switch {
	case errors.Is(err, ErrNoArtifacts):
		http.Error(w, "404 Not Found", http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		serveFile(w, r, archive.Path)
	}
}

// save writes a file completely or not at all.
func save(file string, from io.Reader) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(dir), "upload-*")
	if err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := io.Copy(f, from); err != nil {
		return errors.Join(fmt.Errorf("receiving: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return os.Rename(f.Name(), file)
}
