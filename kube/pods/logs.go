package pods

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/kube/cluster"
)

// largestLine is how much of a line of a log is kept, in bytes. The rest of the
// line is dropped.
const largestLine = 256 << 10

// LogLine is a line of a container's log.
type LogLine struct {
	// Time is when the container wrote it, as the node's clock and the kubelet
	// have it: RFC 3339 with nanoseconds.
	Time string
	// Text is the line without its end.
	Text string
	// Gap is whether lines before it may be missing: the kubelet has begun a new
	// file since the one that was read last, and gives no older ones.
	Gap bool
}

// log opens a container's log with the times of its lines.
func (c *Client) log(ctx context.Context, ref Ref, options corev1.PodLogOptions) (io.ReadCloser, error) {
	options.Timestamps = true
	// rbac: pods/log get
	return c.cluster.REST().Get().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).SubResource("log").
		VersionedParams(&options, c.cluster.ParameterCodec()).Stream(ctx)
}

// errEnough ends the reading of a log that has more lines than were asked for.
var errEnough = errors.New("more lines than were asked for")

// LastLines are the last lines of a container's log, at most n of them.
func (c *Client) LastLines(ctx context.Context, ref Ref, container string, n int64) ([]LogLine, error) {
	var lines []LogLine
	err := c.cluster.Retry(ctx, c.budget, func(ctx context.Context) error {
		lines = nil
		body, err := c.log(ctx, ref, corev1.PodLogOptions{Container: container, TailLines: &n})
		if err != nil {
			return err
		}
		defer body.Close() //nolint:errcheck // it was read
		return readLog(body, func(line LogLine) error {
			if int64(len(lines)) == n {
				return errEnough // a kubelet stops by itself
			}
			lines = append(lines, line)
			return nil
		})
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("reading the log of container %s of Pod %s: %w", container, ref, cluster.Bare(err))
	}
	return lines, nil
}

// ReadLog gives the lines of a container's log from a place on, each once and
// with the place behind it. With follow it goes on while the container runs. It
// ends without an error where the log ends, and otherwise with the error of take,
// of ctx or of the connection; a later call goes on at the place that take was
// given last.
func (c *Client) ReadLog(ctx context.Context, ref Ref, container string, from LogPlace, follow bool, take func(line LogLine, next LogPlace) error) error {
	options := corev1.PodLogOptions{Container: container, Follow: follow}
	if since, set := from.since(); set {
		options.SinceTime = &metav1.Time{Time: since}
	}
	body, err := c.log(ctx, ref, options)
	if err != nil {
		return fmt.Errorf("reading the log of container %s of Pod %s: %w", container, ref, cluster.Bare(err))
	}
	defer body.Close() //nolint:errcheck // it was read
	resume := from.resume()
	return readLog(body, func(line LogLine) error {
		if resume.known(line) {
			return nil
		}
		line.Gap = resume.gap()
		from.pass(line)
		return take(line, from)
	})
}

// readLog takes a log apart. A last line without an end is one that is still
// being written or was cut off with the connection, and is left out.
func readLog(body io.Reader, take func(LogLine) error) error {
	reader := bufio.NewReaderSize(body, 64<<10)
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		if room := largestLine - len(line); len(part) > room {
			part = part[:room]
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		stamp, text, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		line = line[:0]
		if err := take(LogLine{Time: stamp, Text: text}); err != nil {
			return err
		}
	}
}

// LogPlace is how far a container's log has been read, so that a later reader
// goes on exactly there. The zero value is the log's beginning.
//
// A log can be asked for from a time on, in whole seconds, and the kubelet
// judges each line by its own time. Lines written at once on stdout and stderr
// may stand in another order than their times. So a place is a second, and how
// many lines there were from this second on: those are the first ones of the
// answer.
type LogPlace struct {
	// Second is where the next reader begins, as a Unix time; 0 is the log's
	// beginning.
	Second int64 `json:"second"`
	// Read are the lines read that were written in this second, and in the
	// next one.
	Read [2]int `json:"read"`
	// First are the times of the first line of the log from this second on, and
	// from the next one on. The end of a longer line that was begun before may
	// stand before it in the answer.
	First [2]string `json:"first"`
	// Last is the latest time of a line.
	Last string `json:"last"`
}

func (p *LogPlace) since() (time.Time, bool) { return time.Unix(p.Second, 0), p.Second != 0 }

// pass moves the place on behind a line.
func (p *LogPlace) pass(line LogLine) {
	at, err := time.Parse(time.RFC3339Nano, line.Time)
	if err != nil {
		return // no line of a kubelet
	}
	switch ahead := at.Unix() - p.Second; {
	case ahead < 0:
		return // not asked for again
	case ahead > 2 || p.Second == 0:
		p.Second, p.Read, p.First = at.Unix()-1, [2]int{}, [2]string{}
	case ahead == 2:
		p.Second, p.Read, p.First = p.Second+1, [2]int{p.Read[1]}, [2]string{p.First[1]}
	}
	i := at.Unix() - p.Second
	p.Read[i]++
	for ; i >= 0; i-- {
		p.First[i] = cmp.Or(p.First[i], line.Time)
	}
	if p.Last == "" || later(line.Time, p.Last, 0) {
		p.Last = line.Time
	}
}

// disorder is by how much the times of two lines on stdout and stderr may
// contradict their order.
const disorder = 10 * time.Millisecond

func later(a, b string, by time.Duration) bool {
	at, err1 := time.Parse(time.RFC3339Nano, a)
	bt, err2 := time.Parse(time.RFC3339Nano, b)
	return err1 == nil && err2 == nil && at.After(bt.Add(by))
}

// resume is how the lines of an answer are told apart that were read before.
func (p *LogPlace) resume() *resumption {
	return &resumption{left: p.Read[0] + p.Read[1], first: p.First[0], last: p.Last}
}

type resumption struct {
	// left is how many lines of the answer are known.
	left int
	// first is the time of the first of them, last the latest of all.
	first, last string
	found       bool
	// seen is whether the latest of them was in the answer, and lost whether the
	// answer went on without it.
	seen, lost bool
}

// gap says whether lines may be missing before the one that was asked about
// last, once.
func (r *resumption) gap() bool {
	lost := r.lost
	r.lost = false
	return lost
}

// known says whether a line has been read before.
func (r *resumption) known(line LogLine) bool {
	r.seen = r.seen || line.Time == r.last
	switch {
	case r.left == 0:
		return false
	case r.found || line.Time == r.first:
		r.found = true
		r.left--
		return true
	case later(line.Time, r.last, disorder):
		// The known lines are gone: the kubelet has begun a new file.
		r.left, r.lost = 0, !r.seen
		return false
	}
	return true // the end of a line that began before the second
}
