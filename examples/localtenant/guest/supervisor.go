package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// restartDelay is the pause before a program that ended by itself is started
// again.
const restartDelay = time.Second

// supervisor keeps programs running. As the first process of its PID
// namespace it also inherits and reaps every orphan of the node.
type supervisor struct {
	out io.Writer

	mu      sync.Mutex
	running map[int]*program
}

type program struct {
	name    string
	service Service
	pid     int
}

func newSupervisor(out io.Writer) *supervisor {
	return &supervisor{out: out, running: map[int]*program{}}
}

// keep starts a program and starts it again each time that it ends.
func (s *supervisor) keep(name string, service Service) (*program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &program{name: name, service: service}
	return p, s.start(p)
}

// start must be called with the lock held: the reaper must not see the end of
// a process before it is in the table.
func (s *supervisor) start(p *program) error {
	log, err := os.OpenFile(p.service.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: open its log: %w", p.name, err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer null.Close()
	process, err := os.StartProcess(p.service.Path, append([]string{p.service.Path}, p.service.Args...), &os.ProcAttr{
		Env:   p.service.Env,
		Files: []*os.File{null, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.pid = process.Pid
	s.running[p.pid] = p
	// Its end is seen by the reaper, not by this handle.
	return process.Release()
}

// restart kills a program and returns when it has been started again.
func (s *supervisor) restart(p *program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[p.pid] != p {
		// It has just ended by itself and waits for its restart.
		return s.start(p)
	}
	old := p.pid
	if err := unix.Kill(old, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(old, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	delete(s.running, old)
	return s.start(p)
}

// reap takes the exit status of everything that has ended, at each signal that
// something has.
func (s *supervisor) reap(signals <-chan os.Signal) {
	for range signals {
		s.reapAll()
	}
}

func (s *supervisor) reapAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		p, known := s.running[pid]
		if !known {
			continue
		}
		delete(s.running, pid)
		fmt.Fprintf(s.out, "%s (pid %d in the node) has ended: %s\n", p.name, pid, describe(status))
		time.AfterFunc(restartDelay, func() { s.revive(p) })
	}
}

func (s *supervisor) revive(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[p.pid] == p {
		return
	}
	if err := s.start(p); err != nil {
		fmt.Fprintln(s.out, err)
		time.AfterFunc(restartDelay, func() { s.revive(p) })
	}
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
