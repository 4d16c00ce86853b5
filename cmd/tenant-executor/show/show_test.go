package show_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
)

func table(coloured bool) *show.Table {
	t := &show.Table{Coloured: coloured}
	t.Head("JOB", "PHASE", "NAME")
	t.Add(show.Text("4711"), show.Cell{Text: "running", Tone: show.Good}, show.Text("ünit: [a,\tb]"))
	t.Add(show.Text("8"), show.Text(""), show.Text("\x1b[2J\x07evil\nname"))
	return t
}

func TestTable(t *testing.T) {
	for name, want := range map[string]string{
		"plain":    "JOB   PHASE    NAME\n4711  running  ünit: [a, b]\n8     -        �[2J�evil name\n",
		"coloured": "\x1b[2mJOB\x1b[0m   \x1b[2mPHASE\x1b[0m    \x1b[2mNAME\x1b[0m\n4711  \x1b[32mrunning\x1b[0m  ünit: [a, b]\n8     -        �[2J�evil name\n",
	} {
		var out bytes.Buffer
		if err := table(name == "coloured").Write(&out); err != nil || out.String() != want {
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, out.String(), want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1999 * time.Millisecond: "1s", time.Minute: "1m", 5*time.Minute + 12*time.Second: "5m12s",
		3*time.Hour + 4*time.Minute: "3h4m", 47*time.Hour + 59*time.Minute: "47h59m", 55 * time.Hour: "2d7h", 48 * time.Hour: "2d",
	} {
		if got := show.Age(d); got != want {
			t.Errorf("Age(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestFormats(t *testing.T) {
	all := []show.Format{show.TableFormat, show.JSONFormat, show.YAMLFormat}
	if f, err := show.ParseFormat("json", all); err != nil || f != show.JSONFormat {
		t.Errorf("%q, %v", f, err)
	}
	if _, err := show.ParseFormat("wide", all); err == nil || err.Error() != `--output is "wide": use table, json or yaml` {
		t.Error(err)
	}
	value := struct {
		Name string `json:"name"`
	}{"x"}
	for format, want := range map[show.Format]string{show.JSONFormat: "{\n  \"name\": \"x\"\n}\n", show.YAMLFormat: "---\nname: x\n"} {
		var out bytes.Buffer
		if err := format.Write(&out, value); err != nil || out.String() != want {
			t.Errorf("%s: %v, %q", format, err, out.String())
		}
	}
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	p := show.Plain{To: &out}
	in := "\x1b[0;33mWARNING: x\x1b[0;m\n\x1b[2J\x1b[31;1mred\x1b[0;m\x1b["
	if n, err := p.Write([]byte(in)); n != len(in) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if want := "WARNING: x\n\x1b[2Jred\x1b["; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// What is no terminal has no colours, and no prompt.
func TestNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, stream := range []any{file, &bytes.Buffer{}, nil} {
		if show.Terminal(stream) || show.Coloured(stream, nil) {
			t.Errorf("%T is taken for a terminal", stream)
		}
	}
}
