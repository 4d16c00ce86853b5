package main_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/faultserver"
)

// The connection is cut a thousand times while two million lines come through,
// each time after a number of bytes that chance decides, and in a way that it
// decides too, half of it over each transport.
// The seeds are fixed, so that a failure can be seen again. A plain exec is cut
// in the same ways, once each.
func TestThousandCuts(t *testing.T) {
	t.Parallel()
	withoutRaceDetector(t)
	const (
		count = 2_000_000
		// About half of the connections end within their first full frame and
		// bring nothing.
		longest = 110 << 10
		most    = 510
	)
	quick := []faultserver.Break{faultserver.CloseStreams, faultserver.GoAway, faultserver.ResetStreams, faultserver.FIN, faultserver.RST}
	// On a busy machine the driver tells of connections that bring nothing, on
	// lines of their own.
	told := regexp.MustCompile(`(\x1b\[[0-9;]*mWARNING: The connection to the script is lost|Reached again, after )[^\n]*\n|\n`)
	want := sha256.Sum256([]byte(strings.ReplaceAll(numbers(count), "\n", "")))
	cuts := make(chan int, 2)
	t.Run("at once", func(t *testing.T) {
		for seed, over := range []string{spdy, webSocket} {
			t.Run(over, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t)
				h.settings["cluster.transport"] = over
				p := h.play()
				h.theJob()
				h.env["TENANT_EXECUTOR_POD"] = h.server.Pods()[0].Name
				chance := rand.New(rand.NewPCG(uint64(seed), uint64(seed)))
				p.onLine(func(n int, l *line) {
					if n <= most {
						l.cutOut(chance.IntN(longest), quick[chance.IntN(len(quick))])
					}
				})
				got := h.run("build_script", h.counted()+fmt.Sprintf("seq 1 %d; exit 42", count))
				if file := h.exitCodeFile(); got.code != buildCode || file != "42\n" {
					t.Errorf("exit code %d, and the runner was handed %q", got.code, file)
				}
				if sha256.Sum256([]byte(told.ReplaceAllString(got.stdout, ""))) != want {
					t.Errorf("%d bytes of output are not the script's %d", len(got.stdout), len(numbers(count)))
				}
				h.expectStarts(1)
				cuts <- p.connections() - 1
				for range 5 {
					at, way := chance.IntN(longest), quick[chance.IntN(len(quick))]
					h.plainExec(p, "seq 1 30000; exit 42", func(l *line) { l.cutOut(at, way) }).expectLost(numbers(long), 42)
				}
			})
		}
	})
	if total := <-cuts + <-cuts; total < 1000 {
		t.Errorf("the connection was cut %d times, want %d", total, 1000)
	} else {
		t.Logf("the connection was cut %d times", total)
	}
}
