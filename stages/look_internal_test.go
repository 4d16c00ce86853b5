package stages

import (
	"fmt"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	for _, test := range []struct {
		text  string
		lines int
		want  string
	}{
		{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 5, "a\nb\n"}, {"a\nb\n", 0, ""}, {"", 3, ""},
		{"\n\n\n", 2, "\n\n"}, {"a", 1, "a"}, {"a\n", 1, "a\n"},
	} {
		got := &tail{lines: test.lines}
		for _, part := range strings.SplitAfter(test.text, "") {
			_, _ = got.Write([]byte(part))
		}
		if string(got.rest()) != test.want {
			t.Errorf("the last %d lines of %q are %q, want %q", test.lines, test.text, got.rest(), test.want)
		}
	}
}

// A long output is not kept as a whole.
func TestTailIsBounded(t *testing.T) {
	got := &tail{lines: 3}
	for i := range 1 << 20 {
		_, _ = fmt.Fprintln(got, i)
		if len(got.kept) > 3*tailSlack {
			t.Fatalf("%d bytes are kept", len(got.kept))
		}
	}
	if want := "1048573\n1048574\n1048575\n"; string(got.rest()) != want {
		t.Errorf("the rest is %q", got.rest())
	}
}
