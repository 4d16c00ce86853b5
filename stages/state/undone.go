package state

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// undonePrefix begins the names of the files with cleanups to be done.
const undonePrefix = "undone-"

// maxUndone is how many cleanups are remembered. Beyond it the oldest is
// forgotten: its Pods still have their expiry.
const maxUndone = 256

// Undone is a cleanup that could not reach the cluster.
type Undone struct {
	// Cluster, Key and Namespace say which Pods it is about: the cluster's
	// identity, the job's key, and where its Pods are. They stand in the
	// file's name, so a file that lost its content still tells all that
	// matters.
	Cluster, Key, Namespace string
	// JobID and Since are for people, and for the order.
	JobID int64
	Since time.Time
	// Owner is whose Pods they are, as the Pods name it; "" where nobody knows.
	Owner string
}

// undoneContent is the file.
type undoneContent struct {
	JobID int64     `json:"job"`
	Since time.Time `json:"since"`
	Owner string    `json:"owner,omitempty"`
}

func (u Undone) name() string {
	return undonePrefix + u.Cluster + "-" + u.Key + "-" + u.Namespace
}

// undoneName reads a file's name.
func undoneName(name string) (Undone, bool) {
	rest, ours := strings.CutPrefix(name, undonePrefix)
	parts := strings.SplitN(rest, "-", 3)
	if !ours || len(parts) != 3 || !hexNumber(parts[0]) || !hexNumber(parts[1]) || len(validation.IsDNS1123Label(parts[2])) > 0 {
		return Undone{}, false
	}
	return Undone{Cluster: parts[0], Key: parts[1], Namespace: parts[2]}, true
}

// hexNumber says whether text is 64 bits in hex, as clusters and jobs are
// named.
func hexNumber(text string) bool {
	bytes, err := hex.DecodeString(text)
	return err == nil && len(bytes) == 8 && strings.ToLower(text) == text
}

// AddUndone remembers a cleanup. One that is remembered already keeps its
// place in the order.
func (f *Folder) AddUndone(u Undone) error {
	if _, valid := undoneName(u.name()); !valid {
		return fmt.Errorf("%q is no name of a cleanup: it takes the cluster's identity, the job's key and a namespace", u.name())
	}
	text, err := json.Marshal(undoneContent{JobID: u.JobID, Since: u.Since.UTC(), Owner: u.Owner})
	if err != nil {
		return fmt.Errorf("writing down a cleanup: %w", err)
	}
	f.forgetOldest()
	err = f.Create(u.name(), append(text, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// forgetOldest makes room for another one.
func (f *Folder) forgetOldest() {
	all, err := f.ListUndone()
	if err != nil {
		return
	}
	for len(all) >= maxUndone {
		if f.RemoveUndone(all[0]) != nil {
			return // the folder's own bound holds
		}
		all = all[1:]
	}
}

// ListUndone gives the cleanups to be done, oldest first. Whatever else is in
// the folder is passed over.
func (f *Folder) ListUndone() ([]Undone, error) {
	names, err := f.List(undonePrefix)
	if err != nil {
		return nil, err
	}
	var all []Undone
	for _, name := range names {
		u, valid := undoneName(name)
		if !valid {
			continue
		}
		// Without its content a cleanup counts as the oldest.
		if text, err := f.ReadFile(name); err == nil {
			var content undoneContent
			if json.Unmarshal(text, &content) == nil {
				u.JobID, u.Since, u.Owner = content.JobID, content.Since, content.Owner
			}
		}
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b Undone) int {
		if order := a.Since.Compare(b.Since); order != 0 {
			return order
		}
		return strings.Compare(a.name(), b.name())
	})
	return all, nil
}

// HasUndone says whether a cleanup is still to be done.
func (f *Folder) HasUndone(u Undone) bool {
	_, err := f.ReadFile(u.name())
	return err == nil
}

// RemoveUndone forgets a cleanup that is done.
func (f *Folder) RemoveUndone(u Undone) error { return f.Remove(u.name()) }
