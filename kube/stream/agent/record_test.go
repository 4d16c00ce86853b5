package agent_test

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

func TestRequestTravels(t *testing.T) {
	want := agent.Request{
		Stage: "build_script-a1b2c3", Size: 12, Sum: "\x00\xff\n\"=raw bytes", Limit: 1 << 30, Silence: 30, Umask: -1, Path: "/x y/ü\n",
	}
	got, err := agent.ParseRequest(want.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestStatusTravels(t *testing.T) {
	for _, want := range []agent.Status{
		{}, {Exit: 255}, {Signal: 9, OOM: 3}, {Stopped: true, Exit: 1},
		{Exit: 1, Trouble: agent.TroubleDisk, Detail: "no space left\nat all"},
	} {
		got, err := agent.ParseStatus(want.Bytes())
		if err != nil || got != want {
			t.Errorf("status %+v came as %+v, error %v", want, got, err)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	good := agent.Request{Stage: "s", Limit: 1 << 30, Silence: 30}
	for name, change := range map[string]func(*agent.Request){
		"no name":      func(r *agent.Request) { r.Stage = "" },
		"a path":       func(r *agent.Request) { r.Stage = "../x" },
		"hidden":       func(r *agent.Request) { r.Stage = ".new-x" },
		"size":         func(r *agent.Request) { r.Size = -1 },
		"limit":        func(r *agent.Request) { r.Limit = 10 },
		"no patience":  func(r *agent.Request) { r.Silence = 0 },
		"name, spaces": func(r *agent.Request) { r.Stage = "a b" },
	} {
		r := good
		change(&r)
		if got, err := agent.ParseRequest(r.Bytes()); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
	if _, err := agent.ParseRequest(good.Bytes()); err != nil {
		t.Errorf("the request that the others are made of is refused: %v", err)
	}
}

func frames() []agent.Frame {
	return []agent.Frame{
		{Kind: agent.KindBegun},
		{Kind: agent.KindData, Offset: 1 << 40, Payload: bytes.Repeat([]byte("x"), agent.MaxPayload)},
		{Kind: agent.KindData, Offset: 3, Payload: []byte("\x00\xff\n")},
		{Kind: agent.KindAlive},
		{Kind: agent.KindEnd, Offset: 6, Payload: agent.Status{Exit: 3}.Bytes()},
	}
}

func wire(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range frames() {
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// However the network cuts the stream into reads, the frames are the same.
func TestFramesSplitAtEveryByte(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"whole":    bytes.NewReader(wire(t)),
		"one byte": iotest.OneByteReader(bytes.NewReader(wire(t))),
		"halves":   iotest.HalfReader(bytes.NewReader(wire(t))),
	} {
		frameReader := agent.NewReader(r)
		for i, want := range frames() {
			got, err := frameReader.Next()
			if err != nil {
				t.Fatalf("%s, frame %d: %v", name, i, err)
			}
			if got.Kind != want.Kind || got.Offset != want.Offset || !bytes.Equal(got.Payload, want.Payload) {
				t.Errorf("%s, frame %d differs", name, i)
			}
		}
		if _, err := frameReader.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the last frame: %v", name, err)
		}
	}
}

// A stream that lacks bytes, wherever, ends in an error and never in a frame
// that was not sent.
func TestLostBytesAreNoticed(t *testing.T) {
	small := agent.Frame{Kind: agent.KindData, Offset: 5, Payload: []byte("0123456789")}.Append(nil)
	small = agent.Frame{Kind: agent.KindEnd, Offset: 15, Payload: agent.Status{}.Bytes()}.Append(small)
	for from := range small {
		for _, lost := range []int{1, 3, len(small) - from} {
			to := min(from+lost, len(small))
			damaged := append(append([]byte{}, small[:from]...), small[to:]...)
			r := agent.NewReader(bytes.NewReader(damaged))
			for count := 0; ; count++ {
				_, err := r.Next()
				if err == nil && count < 1 && from >= headerOf(small) {
					continue // the first frame is whole
				}
				if err == nil {
					t.Fatalf("%d bytes lost at %d: frame %d was accepted", to-from, from, count)
				}
				break
			}
		}
	}
}

// headerOf is the length of the first of the two frames.
func headerOf(two []byte) int {
	return len(two) - len(agent.Frame{Kind: agent.KindEnd, Offset: 15, Payload: agent.Status{}.Bytes()}.Append(nil))
}

func FuzzReader(f *testing.F) {
	f.Add(wire(f))
	f.Add(agent.Frame{Kind: agent.KindData, Payload: []byte("x")}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := agent.NewReader(bytes.NewReader(b))
		var again []byte
		for {
			frame, err := r.Next()
			if err != nil {
				break
			}
			again = frame.Append(again)
		}
		// What was accepted is what was there, byte for byte.
		if !bytes.HasPrefix(b, again) {
			t.Errorf("frames of %q are written as %q", b, again)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add(agent.Status{Exit: 3, Detail: "x\n"}.Bytes())
	f.Add([]byte("exit=\"0\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := agent.ParseStatus(b)
		if err != nil {
			return
		}
		again, err := agent.ParseStatus(s.Bytes())
		if err != nil || again != s {
			t.Errorf("status %+v is read again as %+v, %v", s, again, err)
		}
	})
}

func FuzzParseRequest(f *testing.F) {
	f.Add(agent.Request{Stage: "s", Limit: 1 << 30, Silence: 1}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := agent.ParseRequest(b)
		if err != nil {
			return
		}
		if !agent.ValidStage(r.Stage) {
			t.Errorf("stage %q was accepted", r.Stage)
		}
		again, err := agent.ParseRequest(r.Bytes())
		if err != nil || again != r {
			t.Errorf("request %+v is read again as %+v, %v", r, again, err)
		}
	})
}

// A list that has lost its end is not taken for a shorter one.
func TestListThatIsCutOff(t *testing.T) {
	status := strconv.Quote(string(agent.Status{Exit: 3}.Bytes()))
	whole := "stage=\"a\"\nstarted=\"1\"\nended=\"false\"\nstatus=" + status + "\n\nstage=\"b\"\nstarted=\"2\"\nended=\"true\"\nstatus=" + status + "\n\nend\n"
	for n := range len(whole) {
		if entries, err := agent.ParseList(whole[:n]); !errors.Is(err, agent.ErrCutOff) {
			t.Errorf("%d of %d bytes: %v, %v", n, len(whole), entries, err)
		}
	}
	if entries, err := agent.ParseList(whole); err != nil || len(entries) != 2 || entries[1].Stage != "b" || !entries[1].Ended || entries[1].Status.Exit != 3 {
		t.Errorf("the whole list: %+v, %v", entries, err)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("stage=\"a\"\nstarted=\"1\"\nended=\"false\"\nstatus=\"\"\n\nend\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = agent.ParseList(text) })
}
