package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Entry is one stage as the agent lists it.
type Entry struct {
	Stage string
	// Started is when the stage was started, by the node's clock.
	Started time.Time
	// Ended is whether it has; then Status is how.
	Ended  bool
	Status Status
}

// entrySeparator stands between two entries of a list, listEnd after the last:
// a list may lose its end with its connection, and nothing else would tell.
const (
	entrySeparator = "\n\n"
	listEnd        = "end\n"
)

// ErrCutOff says that a list has lost its end.
var ErrCutOff = errors.New("the list of stages is cut off")

// list writes the stages that this user may see, oldest first.
func list(root string, out io.Writer) error {
	folders, err := os.ReadDir(filepath.Join(root, stagesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all []Entry
	for _, folder := range folders {
		s := folderOf(root, folder.Name())
		info, err := os.Stat(s.path("request"))
		if err != nil {
			continue // another user's, or not whole yet
		}
		e := Entry{Stage: folder.Name(), Started: info.ModTime()}
		if _, e.Status, e.Ended, err = s.status(); err != nil {
			return err
		}
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Started.Before(all[j].Started) })
	for _, e := range all {
		var rec record
		rec.add("stage", e.Stage)
		rec.add("started", strconv.FormatInt(e.Started.UnixNano(), 10))
		rec.add("ended", strconv.FormatBool(e.Ended))
		rec.add("status", string(e.Status.Bytes()))
		if _, err := out.Write(append(rec.bytes(), '\n')); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, listEnd)
	return err
}

// ParseList reads what the agent lists. The error is ErrCutOff where the list
// is not whole.
func ParseList(text string) ([]Entry, error) {
	text, whole := strings.CutSuffix(text, listEnd)
	if !whole || text != "" && !strings.HasSuffix(text, entrySeparator) {
		return nil, ErrCutOff
	}
	var all []Entry
	for part := range strings.SplitSeq(text, entrySeparator) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		fields, err := parseRecord([]byte(part + "\n"))
		if err != nil {
			return nil, err
		}
		n := numbers{fields: fields}
		e := Entry{Stage: fields["stage"], Started: time.Unix(0, n.get("started")), Ended: fields["ended"] == "true"}
		if n.err != nil {
			return nil, n.err
		}
		if e.Status, err = ParseStatus([]byte(fields["status"])); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
