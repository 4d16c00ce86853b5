package agent

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Verbs of the program.
const (
	// VerbFront serves one connection on stdin and stdout: podagent front ROOT.
	VerbFront = "front"
	// VerbList prints the stages of ROOT as records, oldest first: podagent
	// list ROOT.
	VerbList = "list"
	// VerbPorts waits a little for TCP ports of this host, and prints those that
	// do not answer, one a line: podagent ports PORT,PORT.
	VerbPorts = "ports"
	// VerbReach waits a little for a TCP port of another host, and prints what is
	// missing if it does not answer: podagent reach HOST:PORT.
	VerbReach = "reach"
	// VerbVerify checks the program itself: podagent verify SHA-256 (hex).
	VerbVerify = "verify"
	// VerbSupervise runs one stage: podagent supervise FOLDER, with the
	// stage's lock as file 3. Only a front calls it.
	VerbSupervise = "supervise"
)

// Main runs the program with its arguments.
func Main(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: podagent front ROOT")
	}
	switch args[1] {
	case VerbFront:
		return (&Front{Root: args[2], In: os.Stdin, Out: os.Stdout, Spawn: Spawn}).Run()
	case VerbSupervise:
		return Supervise(args[2])
	case VerbList:
		return list(args[2], os.Stdout)
	case VerbPorts:
		return ports(args[2], os.Stdout)
	case VerbReach:
		return reach(args[2], os.Stdout)
	case VerbVerify:
		return verify("/proc/self/exe", args[2])
	}
	return errors.New("usage: podagent front ROOT")
}

// Spawn starts a supervisor in a session of its own: the container runtime
// kills the process of an exec when its connection breaks, and only that one.
func Spawn(folder string, lock *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing is written
	log, err := os.OpenFile(filepath.Join(folder, "log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the supervisor has its own
	process, err := os.StartProcess("/proc/self/exe", []string{"podagent", VerbSupervise, folder}, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{null, null, log, lock},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return process.Release() // it is not waited for
}

// verify checks that a file is what was sent.
func verify(path, want string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	const digits = "0123456789abcdef"
	got := make([]byte, 0, 2*len(sum))
	for _, c := range sum {
		got = append(got, digits[c>>4], digits[c&15])
	}
	if string(got) != want {
		return errors.New("the program did not arrive as it was sent: its checksum is wrong")
	}
	return nil
}
