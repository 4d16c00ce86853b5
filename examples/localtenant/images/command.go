package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// commands runs programs of the machine with one environment.
type commands struct {
	env []string
}

// commandError is a program that failed, with what it wrote to its standard
// error.
type commandError struct {
	name   string
	stderr string
	err    error
}

func (e *commandError) Error() string {
	text := fmt.Sprintf("%s: %v", e.name, e.err)
	if e.stderr != "" {
		text += ": " + e.stderr
	}
	return text
}

func (e *commandError) Unwrap() error { return e.err }

// output runs a program in a folder ("" is the present one), with variables
// added to the environment, and returns its standard output.
func (c commands) output(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(append([]string{}, c.env...), "LC_ALL=C"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err == nil {
		return output, nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%s is needed to make images: %w", name, err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	}
	return nil, &commandError{name: name, stderr: strings.TrimSpace(stderr.String()), err: err}
}
