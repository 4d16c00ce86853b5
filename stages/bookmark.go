package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/kube/pods"
	"github.com/socialweb-computer/tenant-executor/stages/atomicfile"
)

// bookmark is what the stages of a job have told of its containers, so that a
// later stage tells the rest. It is a file in the folder that the runner makes
// for each attempt at a job, and takes away after cleanup with all that is in it
// (executors/custom/custom.go, Cleanup): beside $BUILD_EXIT_CODE_FILE. A stage by
// hand has no such folder, and begins anew.
type bookmark struct {
	path string

	mu    sync.Mutex
	pages pages
}

// pages are the contents of the file.
type pages struct {
	// Pod is the Pod that it is about.
	Pod string `json:"pod"`
	// Over are the services whose end was told.
	Over []string `json:"over,omitempty"`
	// Places is how far the containers' logs were shown.
	Places map[string]pods.LogPlace `json:"places,omitempty"`
}

// bookmarkName is the file's name in the runner's folder.
const bookmarkName = "tenant-executor-told.json"

// openBookmark reads what earlier stages have left. What cannot be read counts
// as nothing told: something is then told twice rather than never.
func openBookmark(env job.Environment, pod string) *bookmark {
	b := &bookmark{pages: pages{Pod: pod}}
	if beside := env.ExitCodeFile(); beside != "" {
		b.path = filepath.Join(filepath.Dir(beside), bookmarkName)
		var found pages
		text, err := os.ReadFile(b.path)
		if err == nil && json.Unmarshal(text, &found) == nil && found.Pod == pod {
			b.pages = found
		}
	}
	if b.pages.Places == nil {
		b.pages.Places = map[string]pods.LogPlace{}
	}
	return b
}

// tell says whether the end of a service is news, and remembers it.
func (b *bookmark) tell(container string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.pages.Over, container) {
		return false
	}
	b.pages.Over = append(b.pages.Over, container)
	return true
}

// place is how far a service's log was shown.
func (b *bookmark) place(container string) pods.LogPlace {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pages.Places[container]
}

func (b *bookmark) move(container string, to pods.LogPlace) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages.Places[container] = to
}

// save writes the file, whole or not at all.
func (b *bookmark) save() error {
	if b.path == "" {
		return nil
	}
	b.mu.Lock()
	saved := pages{Pod: b.pages.Pod, Over: slices.Clone(b.pages.Over), Places: maps.Clone(b.pages.Places)}
	b.mu.Unlock()
	text, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("remembering the services' logs: %w", err)
	}
	err = atomicfile.File{Path: b.path, Mode: 0o600}.Write(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the runner has taken the folder away: no stage follows
	}
	return err
}
