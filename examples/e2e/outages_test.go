//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// How the apiserver comes back after an outage.
const (
	samePort     = "same port"
	newPort      = "new port"
	newAuthority = "new CA"
)

// outages are those that are tried: a few, or all of them where E2E_OUTAGES is
// "all".
func outages() (all []outage) {
	if os.Getenv("E2E_OUTAGES") != "all" {
		return []outage{{12 * time.Second, samePort}, {12 * time.Second, newAuthority}, {30 * time.Second, newPort}}
	}
	for _, lasts := range []time.Duration{5 * time.Second, 12 * time.Second, 30 * time.Second, 2 * time.Minute} {
		for _, back := range []string{samePort, newPort, newAuthority} {
			all = append(all, outage{lasts, back})
		}
	}
	return all
}

type outage struct {
	lasts time.Duration
	back  string
}

// lines is how many lines the script of each of these jobs prints.
const lines = 25

// An apiserver that is away costs nothing, whatever a job is doing meanwhile:
// each prints all of its lines, ends with its script's own exit code, and leaves
// no Pod. The one that must not bear the outage ends as a system failure.
func TestOutagesCostNothing(t *testing.T) {
	localtenant(t, "gateway", "set", "--ceiling", "5")
	t.Cleanup(func() { localtenant(t, "gateway", "set", "--ceiling", strconv.Itoa(bed.Ceiling)) })
	for _, o := range outages() {
		t.Run(fmt.Sprintf("%s, %s", o.lasts, o.back), func(t *testing.T) {
			a := newAffected(t)
			a.begin()
			down := time.Now()
			localtenant(t, "apiserver", "kill")
			a.goOn()
			<-limited(t, o.lasts-time.Since(down)).Done() // the fault itself, not a wait for something
			a.comeBack(o.back)
			for what, wait := range a.waits {
				out := wait()
				if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.ExitCode != 3 {
					t.Errorf("%s: ended with %s, %s, exit code %d: %s; want the script's 3", what, out.Status, out.FailureReason, out.ExitCode, out.Message)
				}
				wantLines(t, what, out.Log)
			}
			if o.lasts > 10*time.Second {
				wantSystemFailure(t, a.impatient(), "ERROR: the stage in the job's Pod", "could not be reached for", "when last heard of, the script was running")
			} else {
				a.impatient() // it may or may not bear this one
			}
			wantNoPods(t, a.ids...)
		})
	}
}

// affected are jobs that an outage meets, each at another moment.
type affected struct {
	t      *testing.T
	config string
	ids    []int64
	// waits give the outcomes, impatient that of the job with a short run.outage.
	waits     map[string]func() testbed.Outcome
	impatient func() testbed.Outcome
	hurried   string // its configuration
	// gate holds the scripts in the middle, and parked the jobs between two calls
	// of the driver, until release is closed.
	gate    string
	parked  chan struct{}
	release chan struct{}
}

func newAffected(t *testing.T) *affected {
	t.Helper()
	a := &affected{t: t, waits: map[string]func() testbed.Outcome{}, gate: safe(t.Name()), parked: make(chan struct{}, 10), release: make(chan struct{})}
	var err error
	if a.config, err = bed.WriteConfig(testbed.Namespace, ""); err != nil {
		t.Fatal(err)
	}
	if a.hurried, err = bed.WriteConfig(testbed.Namespace, "outage = \"5s\"\n[cleanup]\ntimeout = \"2s\"\n"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.open)
	return a
}

func (a *affected) open() {
	bed.Open(a.gate)
	bed.Open(a.gate + "-hurried")
}

// counting is a script that prints its lines and ends with 3.
func counting(between string) string {
	return fmt.Sprintf("for i in $(seq %d); do echo line $i; %s; done; exit 3", lines, between)
}

func (a *affected) job(script string) *job.Job {
	j := task(testbed.WithoutSources(bed.Job("")), script)
	a.ids = append(a.ids, j.ID)
	return j
}

// park starts a job that waits after a call of the driver for the outage.
func (a *affected) park(what, stage string) {
	a.waits[what] = start(a.t, a.config, a.job(counting("true")), runner.Options{OnCall: func(c runner.Call) {
		if c.Stage == stage {
			a.parked <- struct{}{}
			<-a.release
		}
	}})
}

// begin returns at the moment for the outage: all jobs are where they are to be,
// and the last has a Pod that has just started.
func (a *affected) begin() {
	a.t.Helper()
	slow := func(gate string) *job.Job {
		return a.job(counting(fmt.Sprintf("[ $i != 3 ] || { %s; }; sleep 1", bed.Gate(gate))))
	}
	a.waits["in the middle of the script"] = start(a.t, a.config, slow(a.gate), runner.Options{})
	a.impatient = start(a.t, a.hurried, slow(a.gate+"-hurried"), runner.Options{})
	a.park("between two stages", "get_sources")
	a.park("before cleanup", "cleanup_file_variables")
	a.park("before prepare", "config")
	for range 3 {
		select {
		case <-a.parked:
		case <-limited(a.t, jobLimit).Done():
			a.t.Fatal("the jobs do not come to where they are to wait")
		}
	}
	for _, gate := range []string{a.gate, a.gate + "-hurried"} {
		if err := bed.Arrived(limited(a.t, jobLimit), gate); err != nil {
			a.t.Fatal(err)
		}
	}
	a.inPrepare()
	a.open()
}

// inPrepare starts two jobs for one node. It returns when the Pod of one has just
// started; the other one waits for a node.
func (a *affected) inPrepare() {
	a.t.Helper()
	for _, what := range []string{"in prepare", "in prepare too"} {
		a.waits[what] = start(a.t, a.config, a.job(counting("true")), runner.Options{})
	}
	client := admin(a.t)
	err := testbed.Until(context.Background(), "a Pod to start", jobLimit, func(ctx context.Context) (bool, error) {
		for _, id := range a.ids[len(a.ids)-2:] {
			pod, err := podOf(ctx, client, id)
			if err != nil || pod != nil && pod.Status.Phase == corev1.PodRunning {
				return err == nil, err
			}
		}
		return false, nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// goOn lets the jobs that wait go on.
func (a *affected) goOn() { close(a.release) }

// comeBack starts the apiserver, and does what its operator would.
func (a *affected) comeBack(how string) {
	a.t.Helper()
	before, err := bed.Status(limited(a.t, time.Minute))
	if err != nil {
		a.t.Fatal(err)
	}
	switch how {
	case samePort:
		localtenant(a.t, "apiserver", "start")
	case newAuthority:
		localtenant(a.t, "apiserver", "start", "--authority", "new")
	case newPort:
		localtenant(a.t, "apiserver", "start", "--port", "new")
		after, err := bed.Status(limited(a.t, time.Minute))
		if err != nil {
			a.t.Fatal(err)
		}
		if before.URL == after.URL {
			a.t.Fatalf("the apiserver is still at %s", after.URL)
		}
		for _, path := range []string{a.config, a.hurried, bed.Config} {
			replaceInFile(a.t, path, before.URL, after.URL)
		}
	}
	wantApiserver(a.t)
}

// wantLines looks for all lines of a script, in order.
func wantLines(t *testing.T, what, log string) {
	t.Helper()
	found := regexp.MustCompile(`(?m)^line (\d+)\r?$`).FindAllStringSubmatch(plain(log), -1)
	var got, want []string
	for _, match := range found {
		got = append(got, match[1])
	}
	for i := range lines {
		want = append(want, strconv.Itoa(i+1))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: the log has the lines %v, want 1 to %d", what, got, lines)
	}
}
