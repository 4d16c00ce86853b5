package joblog

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMask(t *testing.T) {
	phrases := []string{"secret", "secret-long", "aab", "x"}
	for name, c := range map[string]struct{ in, want string }{
		"nothing":           {"plain text\n", "plain te[MASKED]t\n"},
		"phrase":            {"a secret.", "a [MASKED]."},
		"longest wins":      {"secret-long secret-lo", "[MASKED] [MASKED]-lo"},
		"overlapping start": {"aaab", "a[MASKED]"},
		"broken phrase":     {"secre secretsecret", "secre [MASKED][MASKED]"},
		"ends inside":       {"secr", "secr"},
		"token":             {"t=glpat-AbC_1.2-3 end", "t=glpat-[MASKED] end"},
		"own prefix":        {"mytok-123/4", "mytok-[MASKED]/4"},
		"URL parameter":     {"GET /a?private_token=abc&b=1", "GET /a?private_token=[MASKED]&b=1"},
		"high bytes":        {"\x80\xffsecret\x00", "\x80\xff[MASKED]\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.in)+1; size++ {
				var out bytes.Buffer
				m := newMask(&out, phrases, append(DefaultTokenPrefixes(), "mytok-"))
				for rest := c.in; rest != ""; {
					n := min(size, len(rest))
					if _, err := m.Write([]byte(rest[:n])); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				if out.String() != c.want {
					t.Fatalf("in writes of %d: got %q, want %q", size, out.String(), c.want)
				}
			}
		})
	}
}

func fixedClock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Second); return now }
}

func TestSectionsAndLines(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, Options{Phrases: []string{"hidden"}, Now: fixedClock()})
	err := l.Section("get_sources", "Getting sources", func() error {
		s := l.Stream(1, Stdout)
		_, _ = s.Write([]byte("one hid"))
		_, _ = s.Write([]byte("den\nno newline"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Warn("look out")
	want := "section_start:1767323046:get_sources\r\x1b[0K" +
		"\x1b[0K\x1b[36;1mGetting sources\x1b[0;m\x1b[0;m\n" +
		"one [MASKED]\nno newline" +
		"section_end:1767323047:get_sources\r\x1b[0K" +
		"\x1b[0;33mWARNING: look out\x1b[0;m\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestTimestamps(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, Options{Timestamps: true, Now: func() time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	}})
	s := l.Stream(1, Stderr)
	_, _ = s.Write([]byte("a\nb"))
	_ = s.Close()
	want := "2026-01-02T03:04:05.000006Z 01E a\n2026-01-02T03:04:05.000006Z 01E b\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLimit(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, Options{Limit: 10})
	s := l.Stream(1, Stdout)
	_, _ = s.Write([]byte("0123456789"))
	_, _ = s.Write([]byte("abc"))
	_, _ = s.Write([]byte("def"))
	if got := out.String(); !strings.HasPrefix(got, "0123456789\n") || strings.Contains(got, "abc") ||
		strings.Count(got, "exceeded limit of 10 bytes") != 1 {
		t.Errorf("got %q", got)
	}
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	p := &Plain{To: &out, Lock: new(sync.Mutex), Prefix: "job | ", Now: fixedClock()}
	log := "section_start:1:prepare_script\r\x1b[0K\x1b[0K\x1b[36;1mPreparing\x1b[0;m\n" +
		"line one\r\nhalf a line" +
		"section_end:1:prepare_script\r\x1b[0Ksection_start:2:step_script[collapsed=true]\r\x1b[0Kx\n" +
		"\x1b[32;1mend"
	for _, b := range []byte(log) {
		if _, err := p.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := `job | ── prepare_script
job | Preparing
job | line one
job | half a line
job | ── prepare_script took 1s
job | ── step_script
job | x
job | end
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("plain log (-want +got):\n%s", diff)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &Lines{F: func(s string) { got = append(got, s) }}
	for _, part := range []string{"a", "b\nc\n", "\nrest"} {
		_, _ = l.Write([]byte(part))
	}
	_ = l.Close()
	_ = l.Close()
	if diff := cmp.Diff([]string{"ab", "c", "", "rest"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
