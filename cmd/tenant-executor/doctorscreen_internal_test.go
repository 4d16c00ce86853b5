package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/stages/doctor"
)

func findings() doctor.Report {
	return doctor.Report{Findings: []doctor.Finding{
		{Group: "configuration", Check: "config-file", State: doctor.OK, Evidence: "/etc/x, mode 0600"},
		{Group: "cluster", Check: "apiserver", State: doctor.Failure, Evidence: "nobody listens at https://127.0.0.1:1", Remedy: "start the tenant cluster; if it runs, correct the port"},
		{Group: "cluster", Check: "clock", State: doctor.Skipped, Evidence: "apiserver has failed"},
		{Group: "cluster", Check: "identity", State: doctor.Skipped, Evidence: "apiserver has failed"},
		{Group: "runner", Check: "runner-jobs", State: doctor.Warning, Evidence: "too many", Remedy: "fewer"},
		{Group: "probe", Check: "probe-pod", State: doctor.Skipped, Evidence: "no --probe"},
	}}
}

func shown(s *doctorScreen) string {
	r := findings()
	for _, f := range r.Findings {
		s.tell(f)
	}
	_ = s.summary(r) // a buffer takes everything
	return s.out.(*bytes.Buffer).String()
}

func TestDoctorScreenOfAProgram(t *testing.T) {
	const want = `CONFIGURATION
ok       config-file         /etc/x, mode 0600

CLUSTER
failure  apiserver           nobody listens at https://127.0.0.1:1
                             -> start the tenant cluster; if it runs, correct the port
skipped  clock, identity: apiserver has failed

RUNNER
warning  runner-jobs         too many
                             -> fewer

PROBE
skipped  probe-pod           no --probe

1 failed, 1 with a warning, 1 ok, 3 skipped
`
	if diff := cmp.Diff(want, shown(newDoctorScreen(&bytes.Buffer{}, job.Environment{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDoctorScreenOfATerminal(t *testing.T) {
	const want = "CONFIGURATION\n" +
		"\033[32mok      \033[0m config-file         /etc/x, mode 0600\n" +
		"\nCLUSTER\n" +
		"\033[1;31mfailure \033[0m apiserver           nobody listens at\n" +
		"                             https://127.0.0.1:1\n" +
		"                             -> start the tenant cluster; if\n" +
		"                                it runs, correct the port\n" +
		"\033[2mskipped \033[0m clock, identity: apiserver has failed\n" +
		"\nRUNNER\n" +
		"\033[33mwarning \033[0m runner-jobs         too many\n" +
		"                             -> fewer\n" +
		"\nPROBE\n" +
		"\033[2mskipped \033[0m probe-pod           no --probe\n" +
		"\n\033[1;31m1 failed\033[0m, \033[33m1 with a warning\033[0m, \033[32m1 ok\033[0m, \033[2m3 skipped\033[0m\n"
	if diff := cmp.Diff(want, shown(&doctorScreen{out: &bytes.Buffer{}, colours: true, width: 60})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
