package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// errAbandoned ends a call whose process was left to itself, because the
// runner itself went away.
var errAbandoned = errors.New("the runner has stopped; the driver's process is left to itself")

// process is one call of a driver.
type process struct {
	argv           []string
	dir            string
	env            []string
	stdout, stderr io.Writer
	// graceful is the time from SIGTERM to SIGKILL, force the time from
	// SIGKILL until the process is given up.
	graceful, force time.Duration
	// started is told the process id.
	started func(pid int)
}

// run executes the process in a group of its own and waits until it has
// ended and nobody holds its stdout or stderr any more: a child of the driver
// that keeps one of them open blocks the stage, as under GitLab Runner, which
// gives the driver pipes too (helpers/process).
//
// When ctx ends, the whole group gets SIGTERM and later SIGKILL. When alive
// ends, the process is left to itself and its pipes are closed on our side.
func (p *process) run(ctx, alive context.Context) error {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir = p.dir
	cmd.Env = p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipes, err := p.connect(cmd)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		pipes.closeAll()
		return fmt.Errorf("failed to start command: %w", err)
	}
	pipes.closeWriters()
	if p.started != nil {
		p.started(cmd.Process.Pid)
	}

	done := make(chan error, 1)
	copied := pipes.copyTo(p.stdout, p.stderr)
	go func() {
		err := cmd.Wait()
		copied.Wait()
		pipes.closeReaders()
		done <- err
	}()

	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	case <-alive.Done():
	}
	if alive.Err() != nil {
		pipes.closeReaders()
		return errAbandoned
	}
	return p.kill(cmd.Process.Pid, done, alive, pipes)
}

// kill is GitLab Runner's sequence (helpers/process/killer.go).
func (p *process) kill(pid int, done <-chan error, alive context.Context, pipes *pipes) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, p.graceful}, {syscall.SIGKILL, p.force}} {
		// The group may be gone already: then its end is about to be reported.
		_ = syscall.Kill(-pid, step.signal)
		timer := time.NewTimer(step.wait)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-alive.Done():
			timer.Stop()
			pipes.closeReaders()
			return errAbandoned
		case <-timer.C:
		}
	}
	return fmt.Errorf("failed to kill process PID=%d, likely process is dormant", pid)
}

// pipes connect a process's stdout and stderr with us.
type pipes struct {
	readers, writers []*os.File
}

func (p *process) connect(cmd *exec.Cmd) (*pipes, error) {
	var ps pipes
	for _, end := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			ps.closeAll()
			return nil, fmt.Errorf("making a pipe for the driver's output: %w", err)
		}
		ps.readers, ps.writers = append(ps.readers, r), append(ps.writers, w)
		*end = w
	}
	return &ps, nil
}

func (ps *pipes) copyTo(targets ...io.Writer) *sync.WaitGroup {
	var copied sync.WaitGroup
	for i, r := range ps.readers {
		copied.Go(func() {
			// The pipe's end, or our closing it, ends the copy. Errors of the
			// target are kept by the log.
			_, _ = io.Copy(targets[i], r)
		})
	}
	return &copied
}

func (ps *pipes) closeWriters() {
	for _, f := range ps.writers {
		_ = f.Close()
	}
}

func (ps *pipes) closeReaders() {
	for _, f := range ps.readers {
		_ = f.Close()
	}
}

func (ps *pipes) closeAll() {
	ps.closeWriters()
	ps.closeReaders()
}
