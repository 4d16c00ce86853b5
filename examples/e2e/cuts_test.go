//go:build e2e

package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// cutter passes connections on and cuts all of them whenever it is told to.
type cutter struct {
	net.Listener
	to string

	mu   sync.Mutex
	open map[net.Conn]bool
	cuts int
}

func newCutter(t *testing.T, to string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: listener, to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(conn)
		}
	}()
	return c
}

func (c *cutter) pass(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // it is cut anyhow
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // see above
	c.mu.Lock()
	c.open[conn] = true
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
	c.mu.Lock()
	delete(c.open, conn)
	c.mu.Unlock()
}

// cut resets every connection.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		c.cuts++
	}
}

// Every connection is cut, again and again, often before anything has come over
// it. The log is the script's output to the byte all the same.
func TestConnectionsThatAreAlwaysCut(t *testing.T) {
	lasting := 20 * time.Second
	if os.Getenv("E2E_OUTAGES") == "all" {
		lasting = 2 * time.Minute
	}
	status, err := bed.Status(limited(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(status.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range []string{"spdy", "websocket"} {
		t.Run(transport, func(t *testing.T) {
			c := newCutter(t, address.Host)
			config, err := bed.WriteConfig(testbed.Namespace, "")
			if err != nil {
				t.Fatal(err)
			}
			replaceInFile(t, config, status.URL, "https://"+c.Addr().String())
			replaceInFile(t, config, "[tenant]", fmt.Sprintf("transport = %q\n[tenant]", transport))
			gate := safe(t.Name())
			defer bed.Open(gate)
			// Some 40 KB at a time, and no line twice.
			script := fmt.Sprintf(`%s; echo begin; for i in $(seq %d); do awk -v i=$i 'BEGIN { for (n = 1; n <= 850; n++) print i "-" n "-0123456789012345678901234567890123456789" }'; usleep 200000; done; echo end; exit 3`,
				bed.Gate(gate), 5*int(lasting/time.Second))
			wait := start(t, config, task(testbed.WithoutSources(bed.Job("")), script), runner.Options{})
			if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
				t.Fatal(err)
			}
			bed.Open(gate)
			for until := time.Now().Add(lasting); time.Now().Before(until); {
				<-limited(t, time.Second).Done() // the fault itself, not a wait for something
				c.cut()
			}
			out := wait()
			if out.FailureReason != "script_failure" || out.ExitCode != 3 {
				t.Errorf("ended with %s, exit code %d: %s", out.FailureReason, out.ExitCode, out.Message)
			}
			want := sha256.New()
			for i := range 5 * int(lasting/time.Second) {
				for n := range 850 {
					_, _ = fmt.Fprintf(want, "%d-%d-0123456789012345678901234567890123456789\n", i+1, n+1)
				}
			}
			_, rest, _ := strings.Cut(out.Log, "begin\n")
			printed, _, _ := strings.Cut(rest, "end\n")
			var own []string
			for line := range strings.Lines(printed) {
				// What the driver says meanwhile is not the script's.
				if !strings.Contains(line, "The connection to the script is lost") && !strings.Contains(line, "Reached again") {
					own = append(own, line)
				}
			}
			if got := sha256.Sum256([]byte(strings.Join(own, ""))); string(got[:]) != string(want.Sum(nil)) {
				t.Errorf("%d bytes of output are not the script's", len(printed))
			}
			t.Logf("%d connections were cut", c.cuts)
		})
	}
}
