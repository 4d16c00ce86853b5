package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
)

// stumble panics as a mistake would.
func stumble(at []int) error { return errors.New(string(rune(at[3]))) }

func TestAPanicIsAFailure(t *testing.T) {
	c := &cobra.Command{RunE: func(*cobra.Command, []string) error { return stumble(nil) }}
	c.SetArgs(nil)
	f := failure.Of(execute(t.Context(), c))
	if f.Cause != failure.Internal || !strings.Contains(f.Error(), "index out of range") || !strings.Contains(f.Error(), ".stumble (exit_internal_test.go:") || strings.Contains(f.Error(), "\n") {
		t.Errorf("got %s: %s", f.Cause, f)
	}
}
