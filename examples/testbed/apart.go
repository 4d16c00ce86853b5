package testbed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
)

// Apart is a runner in a process of its own, which runs one job. Unlike the
// Bed's own runner it can be killed. The process is the test program, which
// calls RunApart where IsApart says so.
type Apart struct {
	// Command is the process.
	Command *exec.Cmd
	// Calls tells of each driver process as it starts, and is closed when the
	// runner has ended or was killed.
	Calls  <-chan runner.Call
	log    *lockedBuffer
	result *runner.Result
}

// apartVariable makes a program the runner of an Apart.
const apartVariable = "TESTBED_RUNNER_APART"

// IsApart says whether this process is to call RunApart, and do no more.
func IsApart() bool { return os.Getenv(apartVariable) != "" }

// SecondRunner is the token of another runner than the Bed's.
const SecondRunner = "glrt-t3_otherrunner"

// order is what the process is told.
type order struct {
	Driver, URL, Token, Config, Dir string
	Slot                            int
	Job                             *job.Job
}

// news is what the process tells, a line each.
type news struct {
	Call   *call          `json:",omitempty"`
	Result *runner.Result `json:",omitempty"`
}

type call struct {
	Stage string
	PID   int
}

// StartApart starts a runner with a token, "" for the Bed's own, for one job.
func (b *Bed) StartApart(ctx context.Context, token string, j *job.Job) (*Apart, error) {
	return b.StartApartWith(ctx, b.Config, token, j)
}

// StartApartWith starts such a runner with a configuration file of its own.
func (b *Bed) StartApartWith(ctx context.Context, configFile, token string, j *job.Job) (*Apart, error) {
	if token == "" {
		token = runnerToken
	}
	text, err := json.Marshal(order{Driver: b.Driver, URL: b.url, Token: token, Config: configFile, Dir: b.dir, Slot: int(b.slots.Add(1)), Job: j})
	if err != nil {
		return nil, fmt.Errorf("starting a runner: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting a runner: %w", err)
	}
	a := &Apart{log: &lockedBuffer{}}
	a.Command = exec.CommandContext(ctx, program)
	a.Command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, apartVariable + "=1"}
	a.Command.Stdin = bytes.NewReader(text)
	a.Command.Stderr = a.log
	out, err := a.Command.StdoutPipe()
	if err == nil {
		err = a.Command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting a runner: %w", err)
	}
	calls := make(chan runner.Call, 64)
	a.Calls = calls
	go a.listen(out, calls)
	return a, nil
}

func (a *Apart) listen(out io.Reader, calls chan<- runner.Call) {
	defer close(calls)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var n news
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			continue // the last line of a runner that was killed
		}
		if n.Call != nil {
			calls <- runner.Call{Stage: n.Call.Stage, PID: n.Call.PID}
		}
		if n.Result != nil {
			a.result = n.Result
		}
	}
}

// Wait waits for the runner's end. Without a result the runner was killed.
func (a *Apart) Wait() (result *runner.Result, log string) {
	for range a.Calls { // what nobody has heard
	}
	_ = a.Command.Wait() // how it ended shows in the result
	return a.result, a.log.String()
}

// RunApart is the runner's process: it reads what to do from in, tells on out
// what it does, and writes the job log to stderr. It gives the exit code.
func RunApart(in io.Reader, out io.Writer) int {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := runner.New(runner.Config{
		Runner:  runnerConfig(o.Driver, o.URL, o.Token, o.Config),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.Dir},
		TempDir: o.Dir,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	tell := json.NewEncoder(out)
	result, err := r.Run(context.Background(), o.Job, runner.Options{
		Log: os.Stderr, ConcurrentID: o.Slot,
		OnCall: func(c runner.Call) { _ = tell.Encode(news{Call: &call{c.Stage, c.PID}}) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = tell.Encode(news{Result: &runner.Result{Status: result.Status, FailureReason: result.FailureReason, Message: result.Message}})
	return 0
}

// RunnerLabel is the value of the Pods' runner label for a token.
func RunnerLabel(token string) string {
	if token == "" {
		token = runnerToken
	}
	return strings.TrimSpace(runnerConfig("", "", token, "").ShortToken())
}

// StateFiles are the files of the driver's state folder that begin with a
// prefix.
func (b *Bed) StateFiles(prefix string) ([]string, error) {
	return filepath.Glob(filepath.Join(b.dir, "state", prefix+"*"))
}
