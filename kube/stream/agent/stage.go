package agent

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stageFolder is the folder of one stage:
//
//	request  what the stage was started with
//	script   the script, until the stage ends
//	lock     held by the supervisor for as long as it lives
//	pid      the supervisor's process
//	log      what the supervisor says if it fails
//	shell    the shell's process, and its session
//	begun    made just before the shell starts: the script may have run
//	out.N    the output, a piece a file
//	marks.N  of which stream it is, where the streams are kept apart
//	ack      how much of the output has been printed
//	stop     the grace in milliseconds and one more, 0 until the stage is to be ended
//	owner    held by the sessions of the driver that started the stage
//	status   how it ended
//
// Whatever is written once the stage runs has its place on the disk from the
// start, in its own file or in NAME.new: a full disk keeps no stage from being
// watched, stopped and told of.
type stageFolder string

const stagesName = "stages"

func folderOf(root, stage string) stageFolder {
	return stageFolder(filepath.Join(root, stagesName, stage))
}

// root is the folder of all stages of the container.
func (s stageFolder) root() string { return filepath.Dir(filepath.Dir(string(s))) }

func (s stageFolder) path(name string) string { return filepath.Join(string(s), name) }

// exists says whether the stage is known here.
func (s stageFolder) exists() bool {
	_, err := os.Stat(s.path("request"))
	return err == nil
}

// errShort and errSum refuse a script that did not arrive as it was sent.
var (
	errShort = errors.New("the script did not arrive whole")
	errSum   = errors.New("the script did not arrive as it was sent: its checksum is wrong")
)

// apart says whether the stage keeps the streams of its output apart.
func (s stageFolder) apart() (bool, error) {
	b, err := os.ReadFile(s.path("request"))
	if err != nil {
		return false, err
	}
	r, err := ParseRequest(b)
	return r.Apart, err
}

// create makes the stage's folder with the script in it, all at once: it is
// there whole or not at all. A folder that is there already is left alone.
func (s stageFolder) create(r Request, script io.Reader) error {
	parent := filepath.Dir(string(s))
	if err := makeStages(parent); err != nil {
		return err
	}
	removeHalfMade(parent)
	temp, err := os.MkdirTemp(parent, halfMade+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // moved away on success
	if err := writeScript(filepath.Join(temp, "script"), r, script); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"request":    r.Bytes(),
		"lock":       nil,
		"owner":      nil,
		"log":        nil,
		"begun.new":  nil,
		"pid.new":    make([]byte, numberRoom),
		"shell.new":  make([]byte, numberRoom),
		"status.new": make([]byte, statusRoom),
		stopName:     make([]byte, 8),
		ackName:      make([]byte, 8),
	} {
		if err := os.WriteFile(filepath.Join(temp, name), content, fileMode); err != nil {
			return err
		}
	}
	// Renaming onto a folder with files in it fails: then somebody else was
	// first, with the same script.
	if err := os.Rename(temp, string(s)); err != nil && !s.exists() {
		return err
	}
	return nil
}

// halfMade begins the names of stage folders that are not whole yet; the process
// that makes one follows.
const halfMade = ".new-"

// removeHalfMade removes the folders whose makers were killed, with the connection
// that brought the script: what has come of the script is there.
func removeHalfMade(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		rest, found := strings.CutPrefix(entry.Name(), halfMade)
		maker, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(maker)
		if !found || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(filepath.Join(parent, entry.Name())) // another user's stay
		}
	}
}

// noRoom reports whether an error says that the disk, or what the user may have
// of it, is full.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// makeStages makes the folder of all stages and the root above it. The users of
// a container may differ from stage to stage, so each may make stages and none
// may touch another's.
func makeStages(path string) error {
	for _, folder := range []string{filepath.Dir(path), path} {
		err := os.Mkdir(folder, 0o777)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
			return err
		}
	}
	return nil
}

func writeScript(path string, r Request, script io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, folderMode)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // closed below on success
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), script)
	switch {
	case err != nil:
		return err
	case n != r.Size:
		return errShort
	case string(sum.Sum(nil)) != r.Sum:
		return errSum
	}
	return f.Close()
}

// lock takes the stage's lock. It is false while a supervisor lives.
func (s stageFolder) lock() (*os.File, bool, error) {
	f, err := os.OpenFile(s.path("lock"), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, f.Close()
	}
	if err != nil {
		_ = f.Close()
		return nil, false, err
	}
	return f, true, nil
}

// begin makes the mark that the script may have run. Its error says that it
// was there already: then the script must not run.
func (s stageFolder) begin() error { return os.Rename(s.path("begun.new"), s.path("begun")) }

func (s stageFolder) hasBegun() bool {
	_, err := os.Stat(s.path("begun"))
	return err == nil
}

// numberRoom is more than a number needs, in bytes.
const numberRoom = 32

// writeNumber writes a number into its place, whole or not at all. A supervisor
// whose predecessor died takes over its place.
func (s stageFolder) writeNumber(name string, n int) error {
	if err := os.Rename(s.path(name), s.path(name+".new")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.fill(name, []byte(strconv.Itoa(n)))
}

// fill writes a file of which NAME.new is the place. It takes no new place on the
// disk.
func (s stageFolder) fill(name string, content []byte) error {
	f, err := os.OpenFile(s.path(name+".new"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the truncation below is what counts
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		return err
	}
	return os.Rename(s.path(name+".new"), s.path(name))
}

// readNumber reads a process's number; one below 2 is none of ours.
func (s stageFolder) readNumber(name string) (int, error) {
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 2 {
		return 0, errRecord
	}
	return n, nil
}

const stopName = "stop"

// askStop writes down that the stage is to be ended.
func (s stageFolder) askStop(milliseconds int64) error {
	return writePlace(s.path(stopName), milliseconds+1)
}

func (s stageFolder) stopAsked() bool { return readPlace(s.path(stopName)) > 0 }

// stopGrace is how long the processes of a stage that is to be ended have
// between TERM and KILL; none where that could not be written.
func (s stageFolder) stopGrace() time.Duration {
	return time.Duration(max(readPlace(s.path(stopName))-1, 0)) * time.Millisecond
}

// lastWords is what a supervisor that failed has said.
func (s stageFolder) lastWords() string {
	b, err := os.ReadFile(s.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(b[:min(len(b), maxDetail/2)])
}

// statusRoom is more than any status needs, in bytes.
const statusRoom = 4096

// maxDetail is how long a status's detail may be, so that it fits.
const maxDetail = 500

// finish writes the status, and removes the script.
func (s stageFolder) finish(total int64, status Status) error {
	if len(status.Detail) > maxDetail {
		status.Detail = status.Detail[:maxDetail]
	}
	_ = os.Remove(s.path("script")) // it holds the job's variables
	return s.fill("status", append([]byte(strconv.FormatInt(total, 10)+"\n"), status.Bytes()...))
}

// status reads how the stage ended and how long its output is; false while it
// has not.
func (s stageFolder) status() (total int64, status Status, ended bool, err error) {
	b, err := os.ReadFile(s.path("status"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, Status{}, false, nil
	}
	if err != nil {
		return 0, Status{}, false, err
	}
	for i, c := range b {
		if c == '\n' {
			if total, err = strconv.ParseInt(string(b[:i]), 10, 64); err != nil {
				return 0, Status{}, false, errRecord
			}
			status, err = ParseStatus(b[i+1:])
			return total, status, err == nil, err
		}
	}
	return 0, Status{}, false, errRecord
}
