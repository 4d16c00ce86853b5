// Package proc starts child processes that cannot outlive their parent, and
// finds processes by what /proc says about them.
package proc

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// ErrSpawnerClosed says that no more children can be started.
var ErrSpawnerClosed = errors.New("no more processes are started: the tenant is shutting down")

// Spec says what to start.
type Spec struct {
	// Name is used in messages.
	Name string
	// Path is the program; Args are its arguments without the program.
	Path string
	Args []string
	Env  []string
	// Log takes stderr, and stdout unless Stdout is set. The file is appended to.
	Log string
	// Stdin and Stdout are files of the caller; nil stands for /dev/null and
	// the log.
	Stdin  *os.File
	Stdout *os.File
	// Cloneflags are namespaces to make for the child, as in clone(2).
	Cloneflags uintptr
}

// Process is a started child.
type Process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Spawner starts children that the kernel kills when this program dies, even
// by SIGKILL (prctl(2), PR_SET_PDEATHSIG).
//
// The signal belongs to the thread that started the child, not to the
// process. So one thread starts them all, and stays until Close.
type Spawner struct {
	requests chan request
	closed   chan struct{}
	once     sync.Once

	mu       sync.Mutex
	children map[*Process]bool
}

type request struct {
	cmd   *exec.Cmd
	reply chan error
}

// NewSpawner starts the thread.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request), closed: make(chan struct{}), children: map[*Process]bool{}}
	go s.serve()
	return s
}

func (s *Spawner) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case <-s.closed:
			return
		case r := <-s.requests:
			r.reply <- r.cmd.Start()
		}
	}
}

// Close kills all children that still run, waits until they are gone, and
// ends the thread.
func (s *Spawner) Close() {
	s.once.Do(func() { close(s.closed) })
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.children))
	s.mu.Unlock()
	for _, child := range left {
		// A child that cannot be killed has ended, and then Done says so.
		_ = child.cmd.Process.Kill()
		<-child.Done()
	}
}

// keep remembers a child until it ends. After Close there is nobody to
// remember it for, and it is killed.
func (s *Spawner) keep(child *Process) error {
	s.mu.Lock()
	s.children[child] = true
	s.mu.Unlock()
	go func() {
		child.err = child.cmd.Wait()
		s.mu.Lock()
		delete(s.children, child)
		s.mu.Unlock()
		close(child.done)
	}()
	select {
	case <-s.closed:
		return errors.Join(ErrSpawnerClosed, child.Kill())
	default:
		return nil
	}
}

// Start starts a child.
func (s *Spawner) Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = spec.Env
	cmd.Stdout, cmd.Stderr = log, log
	if spec.Stdout != nil {
		cmd.Stdout = spec.Stdout
	}
	if spec.Stdin != nil {
		cmd.Stdin = spec.Stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// A session of its own: a signal to the daemon's terminal is not
		// the children's.
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: spec.Cloneflags,
	}
	reply := make(chan error, 1)
	select {
	case s.requests <- request{cmd: cmd, reply: reply}:
	case <-s.closed:
		return nil, ErrSpawnerClosed
	}
	if err := <-reply; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{name: spec.Name, cmd: cmd, done: make(chan struct{})}
	if err := s.keep(p); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

// PID is the process id, as the host sees it.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running tells whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the process by SIGKILL and waits until it is gone. One that has
// ended already is no error.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// Ending describes how the process ended, such as "exit status 1".
func (p *Process) Ending() string {
	<-p.done
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// Tail gives at most the last max bytes of a log, for error messages.
func Tail(path string, max int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > max {
		if _, err := file.Seek(-max, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, max))
	if err != nil {
		return ""
	}
	return string(text)
}
