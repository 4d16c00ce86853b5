package joblog_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// mix plays a sequence: "L:x" is a line of a service, "F" a flush, all else
// output of the script.
func mix(t *testing.T, steps ...string) string {
	t.Helper()
	var out bytes.Buffer
	m := joblog.NewMixer(&out)
	for _, step := range steps {
		var err error
		switch line, isLine := strings.CutPrefix(step, "L:"); {
		case isLine:
			err = m.Line(line + "\n")
		case step == "F":
			err = m.Flush()
		default:
			var n int
			if n, err = io.WriteString(m, step); n != len(step) {
				t.Errorf("wrote %d of %d bytes", n, len(step))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestMixer(t *testing.T) {
	big := strings.Repeat("b", 256<<10)
	for _, test := range []struct {
		name  string
		steps []string
		want  string
	}{
		{"at a line's beginning", []string{"L:one", "a\n", "L:two"}, "one\na\ntwo\n"},
		{"not within a line", []string{"a", "L:one", "L:two", "b", "c\nd\n", "e\n"}, "abc\none\ntwo\nd\ne\n"},
		{"the rest begins a line", []string{"a", "L:one", "b\nc", "L:two", "\n"}, "ab\none\nc\ntwo\n"},
		{"nothing written", []string{"a", "", "L:one", "\n"}, "a\none\n"},
		{"line end alone", []string{"a", "\n", "L:one"}, "a\none\n"},
		{"flush within a line", []string{"a", "L:one", "F", "L:two"}, "a\none\ntwo\n"},
		{"flush of nothing", []string{"a", "F", "b"}, "ab"},
		{"line without an end", []string{"progress\r", "L:" + big, "L:next"}, "progress\r\n" + big + "\nnext\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := mix(t, test.steps...); got != test.want {
				t.Errorf("got %.200q, want %.200q", got, test.want)
			}
		})
	}
}
