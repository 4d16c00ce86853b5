package joblog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

func TestHarmless(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"plain", "the image's sh: not found (ünit, 日本, 🦊)", "the image's sh: not found (ünit, 日本, 🦊)"},
		{"lines", " one\r\n\ttwo\n\n three\n", "one two three"},
		{"a line of the runner's", "no\n\x1b[32;1mJob succeeded\x1b[0;m\n", "no Job succeeded"},
		{"a section", "x\nsection_start:1560896352:evil[collapsed=true]\r\x1b[0Kopen", "x section_start 1560896352:evil[collapsed=true] �[0Kopen"},
		{"the end of one", "section_end:1560896352:script\r\x1b[0K", "section_end 1560896352:script �[0K"},
		{"cursor and screen", "a\x1b[2J\x1b[1;1Hb\x1b]0;title\x07c\b\bd\x1bcx", "a�[2J�[1;1Hb�]0;title�c��d�cx"},
		{"the other control characters", "a\x00b\x7fc\u009b2Jd\u0085e", "a�b�c�2Jd e"},
		{"right to left, no width, other lines", "a\u202eb\u200bc\u2028d", "a�b�c d"},
		{"no UTF-8", "a\xffb\xc3", "a�b�"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := joblog.Harmless(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A text has an end; up to the limit it is whole, and beyond it its beginning and
// its end are there.
func TestHarmlessIsBounded(t *testing.T) {
	const most = 4 << 10
	if whole := strings.Repeat("x", most); joblog.Harmless(whole) != whole {
		t.Error("a text of the limit's length is cut")
	}
	for _, middle := range []string{strings.Repeat("x", most), strings.Repeat("ü", most), strings.Repeat("\x00日", most), strings.Repeat("x", 1<<20)} {
		got := joblog.Harmless("begin" + middle + "end")
		if len(got) > most || len(got) < most-8 || !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.Contains(got, "[…]") || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %.40q…%q", len(got), got, got[len(got)-20:])
		}
	}
}

func FuzzHarmless(f *testing.F) {
	f.Add("a\x1b[3\x1b[0m1mb\nsection_section_start:start:")
	f.Fuzz(func(t *testing.T, text string) {
		got := joblog.Harmless(text)
		if len(got) > 4<<10 || strings.Contains(got, "section_start:") || strings.Contains(got, "section_end:") {
			t.Errorf("%q becomes %q", text, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	})
}

// Every line of a Log passes that, whatever says it.
func TestLinesAreHarmless(t *testing.T) {
	const evil = "no\n\x1b[2Jsection_end:1:script\r\x1b[0K\nERROR: Job succeeded"
	const tame = "no �[2Jsection_end 1:script �[0K ERROR: Job succeeded"
	var out bytes.Buffer
	log := joblog.New(&out)
	log.Info("%s", evil)
	log.Warn("%s", evil)
	log.Fail(failure.New(failure.ScriptFailed, "%s", evil))
	log.Service("db", "at\tonce \x1b[31mred\x1b[0m\rx")
	want := tame + "\n" +
		"\033[0;33mWARNING: " + tame + "\033[0;m\n" +
		"\033[31;1mERROR: " + tame + "\033[0;m\n" +
		"\033[0;37m[service:db] at\tonce red�x\033[0;m\n"
	if out.String() != want {
		t.Errorf("log\n%q\nwant\n%q", out.String(), want)
	}
}

// Several mistakes of the operator's have a line each; what is within one of them
// stays on it.
func TestJoinedErrorsHaveLines(t *testing.T) {
	var out bytes.Buffer
	inner := errors.Join(errors.New("c is\nevil"), errors.New("d is wrong"))
	err := errors.Join(errors.New("a is wrong"), fmt.Errorf("b: %w", inner))
	joblog.New(&out).Fail(failure.Wrap(failure.Settings, fmt.Errorf("x.toml: %w", err), "the configuration"))
	joblog.New(&out).Fail(failure.Wrap(failure.ScriptFailed, fmt.Errorf("%w\n(%w)", errors.New("e"), errors.New("f")), "once"))
	want := "\033[31;1mERROR: the configuration: x.toml: a is wrong\nb: c is evil\nd is wrong\033[0;m\n" +
		"The operator has to correct the configuration file.\n" +
		"\033[31;1mERROR: once: e (f)\033[0;m\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

// A line of ours begins a line, wherever the script's output stands; the script's
// own bytes stay as they are.
func TestLinesBeginALine(t *testing.T) {
	var to bytes.Buffer
	out := joblog.NewOutput(&to)
	log := joblog.New(out)
	script := func(text string) {
		if n, err := io.WriteString(out, text); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	log.Info("first")
	script("01234567")
	log.Info("within")
	log.Info("again")
	script("89\n")
	script("")
	log.Warn("behind")
	script("50 %\r")
	log.Service("db", "words")
	want := "first\n01234567\nwithin\nagain\n89\n\033[0;33mWARNING: behind\033[0;m\n50 %\r\n\033[0;37m[service:db] words\033[0;m\n"
	if to.String() != want {
		t.Errorf("got %q\nwant %q", to.String(), want)
	}
}
