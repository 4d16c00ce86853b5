package bounded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Program is a program of the host that answers on its stdout and ends, such as
// a plugin that logs in.
type Program struct {
	// Path is a file, or a name that is looked for on PATH.
	Path string
	Args []string
	// Env is its environment, with nothing beside.
	Env []string
	// Stdin is what it is told.
	Stdin string
}

const (
	// longestAnswer is how much of an answer is taken.
	longestAnswer = 1 << 20
	// longestWord is how much is kept of what a program says on stderr.
	longestWord = 4 << 10
	// pipeDelay is how long processes that a program has left behind may hold
	// its answer open.
	pipeDelay = time.Second
)

// errTooLong is the error of an answer that is cut off.
var errTooLong = fmt.Errorf("it answered more than %d bytes", longestAnswer)

// EndError is the end of a program that has failed.
type EndError struct {
	// Err says how it ended.
	Err error
	// Said is its last line on stderr, "" for none. It is of the host, but may
	// hold anything.
	Said string
}

// Error says how the program ended, and what it said.
func (e *EndError) Error() string {
	if e.Said == "" {
		return "it ended with " + e.Err.Error()
	}
	return fmt.Sprintf("it ended with %v: %s", e.Err, e.Said)
}

// Unwrap is how it ended.
func (e *EndError) Unwrap() error { return e.Err }

// Run runs a program to its end and gives its answer, also with an error. When
// ctx ends, the program and its children are killed, whatever they do about
// signals, and the error is that of ctx. It does not outlive this process
// either.
func (p Program) Run(ctx context.Context) ([]byte, error) {
	command := exec.CommandContext(ctx, p.Path, p.Args...)
	command.Env = p.Env
	if command.Env == nil {
		command.Env = []string{} // nil would be that of this process
	}
	command.Stdin = strings.NewReader(p.Stdin)
	answer, said := &head{limit: longestAnswer}, &head{limit: longestWord}
	command.Stdout, command.Stderr = answer, said
	command.WaitDelay = pipeDelay
	// A group of its own is killed as a whole. The runner kills only the
	// driver's, hence the death signal, which the kernel sends when the thread
	// that started the program ends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := command.Run()
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case errors.As(err, &exited):
		return answer.text, &EndError{Err: exited, Said: lastLine(said.text)}
	case errors.Is(err, exec.ErrWaitDelay), err == nil:
		// What it has left behind does not matter.
		if answer.cut {
			return nil, errTooLong
		}
		return answer.text, nil
	}
	return nil, err
}

// head keeps the first bytes of what is written to it and takes the rest, where a
// Buffer would end the writer: a program that says too much on stderr may still
// have a good answer, and one that is cut off would die of SIGPIPE.
type head struct {
	limit int
	text  []byte
	cut   bool
}

func (h *head) Write(data []byte) (int, error) {
	n := min(len(data), h.limit-len(h.text))
	h.text = append(h.text, data[:n]...)
	h.cut = h.cut || n < len(data)
	return len(data), nil
}

// longestLine is how much of a program's last line is told.
const longestLine = 300

// lastLine is the last line that says something, made harmless.
func lastLine(text []byte) string {
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(all[len(all)-1]), "?"))
	if len(line) > longestLine {
		return strings.ToValidUTF8(line[:longestLine], "") + "…"
	}
	return strings.TrimSpace(line)
}
