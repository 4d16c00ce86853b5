package failure_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
)

func TestEveryCauseHasItsRow(t *testing.T) {
	seen := map[failure.Cause]bool{}
	for _, d := range failure.Causes() {
		if seen[d.Cause] {
			t.Errorf("cause %s has two rows", d.Cause)
		}
		seen[d.Cause] = true
		if d.Meaning == "" || !strings.HasSuffix(d.Meaning, ".") {
			t.Errorf("cause %s: meaning %q is not a sentence", d.Cause, d.Meaning)
		}
		if got := failure.New(d.Cause, "x").Class(); got != d.Class {
			t.Errorf("cause %s has class %s, the table says %s", d.Cause, got, d.Class)
		}
	}
	if failure.New("no_such_cause", "x").Class() != failure.System {
		t.Error("a cause without a row has to be a system failure: it must not look like the job's fault")
	}
}

func TestCodes(t *testing.T) {
	lost := failure.Wrap(failure.ConnectionLost, fs.ErrClosed, "the stage")
	odd := map[string]string{"BUILD_FAILURE_EXIT_CODE": "77", "SYSTEM_FAILURE_EXIT_CODE": "88"}
	for _, test := range []struct {
		name string
		env  map[string]string
		err  error
		want int
	}{
		{"no error", odd, nil, 0},
		{"script", odd, failure.Script(42), 77},
		{"connection", odd, lost, 88},
		{"wrapped", odd, fmt.Errorf("around: %w", failure.Script(1)), 77},
		{"no failure of ours", odd, errors.New("what"), 88},
		{"by hand, script", nil, failure.Script(42), 1},
		{"by hand, connection", nil, lost, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			codes, err := failure.ParseCodes(test.env)
			if err != nil {
				t.Fatal(err)
			}
			if got := codes.For(test.err); got != test.want {
				t.Errorf("exit code %d, want %d", got, test.want)
			}
		})
	}
}

func TestParseCodesRefuses(t *testing.T) {
	for _, env := range []map[string]string{
		{"BUILD_FAILURE_EXIT_CODE": "one"},
		{"BUILD_FAILURE_EXIT_CODE": ""},
		{"SYSTEM_FAILURE_EXIT_CODE": "0"},
		{"SYSTEM_FAILURE_EXIT_CODE": "256"},
		{"BUILD_FAILURE_EXIT_CODE": "3", "SYSTEM_FAILURE_EXIT_CODE": "3"},
	} {
		if codes, err := failure.ParseCodes(env); err == nil {
			t.Errorf("ParseCodes(%v) = %+v, want an error", env, codes)
		}
	}
}

func TestFailureKeepsItsError(t *testing.T) {
	f := failure.Wrap(failure.Settings, fs.ErrNotExist, "the configuration")
	if !errors.Is(f, fs.ErrNotExist) {
		t.Error("the error that led to the failure is lost")
	}
	if got, want := f.Error(), "the configuration: file does not exist"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if failure.Of(fmt.Errorf("x: %w", f)).Cause != failure.Settings {
		t.Error("Of does not find a wrapped failure")
	}
	if failure.Of(errors.New("y")).Cause != failure.Internal {
		t.Error("an error of another kind has to be internal")
	}
}
