package stages

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
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

// Who writes decides how long a line is. Up to the limit it is shown whole; of more,
// the end is, and that is said.
func TestTailOfLongLines(t *testing.T) {
	for _, length := range []int{tailMost, tailMost + 1, 3 * tailMost} {
		last := &tail{lines: 2}
		for sent := 0; sent < length; sent += 64 << 10 {
			_, _ = last.Write(bytes.Repeat([]byte("x"), min(64<<10, length-sent)))
			if len(last.kept) > tailMost+2*tailSlack {
				t.Fatalf("%d bytes are kept", len(last.kept))
			}
		}
		var out, said bytes.Buffer
		if err := last.show(&out, joblog.New(&said)); err != nil || out.Len() != min(length, tailMost) {
			t.Errorf("%d of %d bytes are shown, %v", out.Len(), length, err)
		}
		if told := strings.Contains(said.String(), "The last 2 lines have more than 8 MiB"); told != (length > tailMost) {
			t.Errorf("of %d bytes it is said: %q", length, said.String())
		}
	}
}
