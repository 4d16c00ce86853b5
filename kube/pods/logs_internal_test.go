package pods

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// piece is an entry of a container's log as the runtime writes it: a line, or a
// piece of a long one.
type piece struct {
	at      time.Time
	text    string
	partial bool
}

// served is what the kubelet answers: pieces are judged one by one, and a time
// stands where a line of the answer begins
// (pkg/kubelet/kuberuntime/logs/logs.go in Kubernetes).
func served(log []piece, since time.Time) string {
	var b strings.Builder
	begin := true
	for _, p := range log {
		if p.at.Before(since) {
			continue
		}
		if begin {
			b.WriteString(p.at.UTC().Format("2006-01-02T15:04:05.000000000Z") + " ")
		}
		b.WriteString(p.text)
		if begin = !p.partial; begin {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

var errCut = errors.New("cut")

// read reads a log as ReadLog does, at most n lines of it.
func read(t *testing.T, log []piece, place *LogPlace, n int) []string {
	t.Helper()
	var since time.Time
	if at, set := place.since(); set {
		since = at
	}
	var lines []string
	resume := place.resume()
	err := readLog(strings.NewReader(served(log, since)), func(line LogLine) error {
		if resume.known(line) {
			return nil
		}
		if len(lines) == n {
			return errCut
		}
		text := line.Text
		if resume.gap() {
			text = "gap, " + text
		}
		lines = append(lines, text)
		place.pass(line)
		return nil
	})
	if err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	return lines
}

// However often reading breaks off, each line comes once: with many lines in
// one second, quiet times, lines in another order than their times, and long
// lines in pieces.
func TestLogPlaceIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1_800_000_000, 0)
		var log []piece
		var want []string
		for i := range 120 {
			now = now.Add(time.Duration(random.IntN([]int{1e6, 4e8, 3e9}[random.IntN(3)])))
			at := now
			long := random.IntN(8) == 0
			if random.IntN(5) == 0 && !long {
				at = at.Add(-time.Duration(random.IntN(2e6))) // the other stream was faster
			}
			text := fmt.Sprintf("line %d", i)
			want = append(want, text)
			if long {
				log = append(log, piece{at, text[:3], true})
				now = now.Add(time.Duration(random.IntN(15e8)))
				at, text = now, text[3:]
			}
			log = append(log, piece{at, text, false})
		}
		var got []string
		var place LogPlace
		for there := 0; there < len(log); {
			there = min(there+random.IntN(20), len(log))
			for range 3 {
				got = append(got, read(t, log[:there], &place, random.IntN(12))...)
			}
		}
		got = append(got, read(t, log, &place, -1)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// The kubelet begins a new file for a log that grows large. What is in it comes,
// and nothing that came before. Where the new one does not begin before the last
// line that was read, lines may be missing.
func TestLogPlaceInANewFile(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	var log []piece
	for i := range 10 {
		log = append(log, piece{at: at.Add(time.Duration(i) * 100 * time.Millisecond), text: fmt.Sprint(i)})
	}
	for _, gone := range []int{2, 5, 7} {
		var place LogPlace
		got := read(t, log[:5], &place, -1)
		got = append(got, read(t, log[gone:], &place, -1)...)
		want := []string{"0", "1", "2", "3", "4"}
		for i := max(gone, 5); i < 10; i++ {
			want = append(want, fmt.Sprint(i))
		}
		if gone >= 5 {
			want[5] = "gap, " + want[5]
		}
		if !slices.Equal(got, want) {
			t.Errorf("without the first %d: got %v, want %v", gone, got, want)
		}
	}
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", largestLine+10)
	var got []LogLine
	err := readLog(strings.NewReader("T1 plain\nT2 \nT3 carriage\r\nT4  two blanks\nT5 "+long+"\nT6 not whole"), func(line LogLine) error {
		got = append(got, line)
		return nil
	})
	want := []LogLine{
		{Time: "T1", Text: "plain"}, {Time: "T2"}, {Time: "T3", Text: "carriage\r"}, {Time: "T4", Text: " two blanks"},
		{Time: "T5", Text: long[:largestLine-3]},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}
