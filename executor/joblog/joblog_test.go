package joblog_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

func TestLines(t *testing.T) {
	var out bytes.Buffer
	log := joblog.New(&out)
	log.Info("Pod %s runs", "job-1")
	log.Warn("the cluster does not answer\n")
	log.Fail(failure.Script(3))
	log.Fail(failure.New(failure.NodeLost, "node n1 is gone"))
	want := "Pod job-1 runs\n" +
		"\033[0;33mWARNING: the cluster does not answer\033[0;m\n" +
		"\033[31;1mERROR: the script ended with exit code 3\033[0;m\n" +
		"\033[31;1mERROR: node n1 is gone\033[0;m\nRetry the job. With \"retry: when: runner_system_failure\" in .gitlab-ci.yml GitLab does so by itself.\n"
	if out.String() != want {
		t.Errorf("log\n%q\nwant\n%q", out.String(), want)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes", 11: "11 nodes"} {
		if got := joblog.Count(n, "node"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                      "0 s",
		400 * time.Millisecond: "0 s",
		59 * time.Second:       "59 s",
		60 * time.Second:       "1 min",
		125 * time.Second:      "2 min 5 s",
		2 * time.Hour:          "120 min",
	} {
		if got := joblog.Duration(d); got != want {
			t.Errorf("Duration(%s) = %q, want %q", d, got, want)
		}
	}
}
