package agent

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// supervisor runs one stage to its end, in a process of its own.
type supervisor struct {
	folder  stageFolder
	request Request
	shell   int
	// keeping is held by whoever writes to the spool.
	keeping sync.Mutex
	spool   *spoolWriter

	// taken is how many bytes have come out of the pipes, pauses how often a full
	// spool was waited for.
	taken, pauses atomic.Int64

	stopping atomic.Bool
	// muted drops the output, from the moment that it cannot be kept.
	muted atomic.Bool
	// gone is closed when nobody is to wait for the driver any more.
	gone chan struct{}
}

// Supervise is the body of the supervisor process: it runs the stage's script
// and writes down its output and its end. The lock is held by the caller.
func Supervise(folder string) error {
	// The script must not hold the lock on when the supervisor is gone.
	syscall.CloseOnExec(lockFile)
	s := stageFolder(folder)
	b, err := os.ReadFile(s.path("request"))
	if err != nil {
		return err
	}
	request, err := ParseRequest(b)
	if err != nil {
		return err
	}
	v := &supervisor{folder: s, request: request, gone: make(chan struct{})}
	v.spool = &spoolWriter{folder: folder, limit: request.Limit, apart: request.Apart, pause: v.pause}
	return v.run()
}

// lockFile is the file number of the stage's lock in the supervisor.
const lockFile = 3

// pause waits for the driver to print; false once nobody waits any more, or
// nothing more is kept.
func (v *supervisor) pause() bool {
	if v.muted.Load() {
		return false
	}
	v.pauses.Add(1)
	select {
	case <-v.gone:
		return false
	case <-time.After(fullPause):
		return true
	}
}

func (v *supervisor) run() error {
	if err := becomeSubreaper(); err != nil {
		return err
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	// From here on a front can send TERM. A stop that it was asked for before
	// is in its file.
	if err := v.folder.writeNumber("pid", os.Getpid()); err != nil {
		return err
	}
	if v.folder.stopAsked() {
		terms <- syscall.SIGTERM
	}
	if err := v.folder.begin(); err != nil {
		return err
	}
	before := oomKills()
	outputs, shell, err := v.start()
	if err != nil {
		return v.end(startTrouble(err))
	}
	copied := make(chan error, 1)
	go func() { copied <- v.copyAll(outputs) }()
	ended := make(chan syscall.WaitStatus, 1)
	v.shell = shell
	go reap(shell, ended)
	stopped := make(chan struct{})
	go v.stopOn(terms, stopped)

	var wait syscall.WaitStatus
	var troubled error
	select {
	case wait = <-ended:
		if v.stopping.Load() {
			<-stopped // what is written meanwhile is kept
		}
		troubled = v.finish(outputs, copied)
	case troubled = <-copied:
		// Either the script has closed its output, which is its right, or the
		// output cannot be kept: then the script must not go on unseen.
		if troubled != nil {
			v.muted.Store(true)
			v.endTree(0, nil)
		}
		wait = <-ended
	}
	if v.stopping.Load() {
		<-stopped // it may have been asked for since
	}
	status := statusOf(wait)
	status.Stopped = v.stopping.Load()
	status.OOM = max(oomKills()-before, 0)
	if troubled != nil {
		status.Trouble, status.Detail = TroubleDisk, troubled.Error()
	}
	if err := v.end(status); err != nil {
		return err
	}
	return linger(outputs)
}

// start starts the shell with the script. Its output comes out of one pipe,
// stdout and stderr in the order of writing, unless the two are to be told
// apart: no two pipes keep the order between them.
func (v *supervisor) start() ([]output, int, error) {
	shell, err := findShell(os.Getenv("PATH"))
	if err != nil {
		return nil, 0, err
	}
	out, writer, err := openOutput(Stdout)
	if err != nil {
		return nil, 0, err
	}
	defer writer.Close() //nolint:errcheck // the shell has its own
	outputs, errorsTo := []output{out}, writer
	if v.request.Apart {
		errs, writer, err := openOutput(Stderr)
		if err != nil {
			return nil, 0, err
		}
		defer writer.Close() //nolint:errcheck // as above
		outputs, errorsTo = append(outputs, errs), writer
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, 0, err
	}
	defer null.Close() //nolint:errcheck // only read
	if v.request.Umask >= 0 {
		syscall.Umask(v.request.Umask)
	}
	process, err := os.StartProcess(shell, []string{shell, v.folder.path("script")}, &os.ProcAttr{
		Env:   v.environment(),
		Files: []*os.File{null, writer, errorsTo},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, 0, err
	}
	if err := v.folder.writeNumber("shell", process.Pid); err != nil {
		return nil, 0, errors.Join(err, process.Kill())
	}
	return outputs, process.Pid, nil
}

// errNoShell says that the image has no shell.
var errNoShell = errors.New("the image has neither bash nor sh on its PATH")

// defaultPath is where programs are looked for if the image names no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// findShell is the shell that runs the script: bash where there is one, as
// with GitLab's own executors.
func findShell(path string) (string, error) {
	if path == "" {
		path = defaultPath
	}
	for _, name := range []string{"bash", "sh"} {
		for _, folder := range filepath.SplitList(path) {
			file := filepath.Join(folder, name)
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", errNoShell
}

func startTrouble(err error) Status {
	trouble := TroubleStart
	if errors.Is(err, errNoShell) {
		trouble = TroubleNoShell
	}
	return Status{Exit: 127, Trouble: trouble, Detail: err.Error()}
}

// end writes the status down; from then on the stage has ended.
func (v *supervisor) end(status Status) error {
	// Where one of two outputs could not be kept, the other may still be read.
	v.muted.Store(true)
	v.keeping.Lock()
	defer v.keeping.Unlock()
	if err := v.spool.close(); err != nil && status.Trouble == TroubleNone {
		status.Trouble, status.Detail = TroubleDisk, err.Error()
	}
	return v.folder.finish(v.spool.offset, status)
}

// stopTail is how long a stage that was stopped waits for room in its spool: the
// driver may be gone.
const stopTail = 2 * time.Second

// stopOn ends the stage's processes when the supervisor is asked to. What they
// write until they have ended is output like any other.
func (v *supervisor) stopOn(terms <-chan os.Signal, stopped chan<- struct{}) {
	<-terms
	v.stopping.Store(true)
	hurry := make(chan struct{})
	go func() {
		// A further request with no grace left cuts the first one's short.
		for range terms {
			if v.folder.stopGrace() == 0 {
				close(hurry)
				return
			}
		}
	}()
	v.endTree(v.folder.stopGrace(), hurry)
	time.AfterFunc(stopTail, func() { close(v.gone) })
	close(stopped)
}

// endTree ends the stage's processes. A shell that waits for another process
// prints the text of the command when that one is killed: bash 5.3 also for TERM,
// each bash for KILL. The runner's scripts are one such command, a process that
// evaluates the job's script, and the variables of the job with their values stand
// in its text. The shell above it does nothing but wait, so it is ended first,
// before it can say a word. The job's own shell is the one below, and says what
// its traps want to.
func (v *supervisor) endTree(grace time.Duration, hurry <-chan struct{}) {
	if v.evaluates() {
		if p, err := readProcess(v.shell); err == nil && p.parent == os.Getpid() {
			_ = syscall.Kill(v.shell, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
	endTree(os.Getpid(), grace, hurry)
}

// evaluates reports whether the script may be one text that a process below its
// shell evaluates, like the runner's.
func (v *supervisor) evaluates() bool {
	text, err := os.ReadFile(v.folder.path("script"))
	return err != nil || bytes.Contains(text, []byte("eval"))
}

// reap waits for every child, the shell and the orphans that the supervisor
// adopts, and tells the shell's end.
func reap(shell int, ended chan<- syscall.WaitStatus) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return // no child is left
		case pid == shell && (status.Exited() || status.Signaled()):
			ended <- status
		}
	}
}

func statusOf(wait syscall.WaitStatus) Status {
	if wait.Signaled() {
		return Status{Signal: int(wait.Signal())}
	}
	return Status{Exit: wait.ExitStatus()}
}

// becomeSubreaper has orphaned descendants come back to this process
// (PR_SET_CHILD_SUBREAPER, see prctl(2)).
func becomeSubreaper() error {
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	return nil
}
