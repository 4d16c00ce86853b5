package owner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Host is the machine that the driver runs on, as /proc shows it.
type Host struct {
	// Proc is where the process file system is mounted.
	Proc string
	// Identity names the host, also after a reboot; see Identify. Without it
	// nothing is proven.
	Identity string
	// Hostname is the host's name.
	Hostname string
	// Signal sends a signal to a process, as kill(2).
	Signal func(pid int, signal syscall.Signal) error
}

// System is this host.
func System(identity, hostname string) Host {
	return Host{Proc: "/proc", Identity: identity, Hostname: hostname, Signal: syscall.Kill}
}

// identityLength is how many hex digits name a host.
const identityLength = 16

// Identify names a host by all that tells two apart: machines made from one
// image share what is in the image, containers share the machine.
func Identify(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil))[:identityLength]
}

// boot is the kernel's id of this boot, and when it began.
func (h Host) boot() (id string, since time.Time, err error) {
	text, err := h.read("sys/kernel/random/boot_id")
	if err != nil {
		return "", time.Time{}, err
	}
	stat, err := h.read("stat")
	if err != nil {
		return "", time.Time{}, err
	}
	for line := range strings.Lines(string(stat)) {
		if seconds, found := strings.CutPrefix(strings.TrimSpace(line), "btime "); found {
			n, err := strconv.ParseInt(seconds, 10, 64)
			if err != nil {
				return "", time.Time{}, fmt.Errorf("reading the time of boot: %w", err)
			}
			return strings.TrimSpace(string(text)), time.Unix(n, 0), nil
		}
	}
	return "", time.Time{}, errNoBoot
}

var errNoBoot = errors.New("the process file system does not tell when the host was booted")

// space is the PID namespace of the driver.
func (h Host) space() (string, error) {
	return os.Readlink(filepath.Join(h.Proc, "self/ns/pid"))
}

func (h Host) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(h.Proc, name))
}

// process is what the kernel says about a process.
type process struct {
	state   string
	parent  int
	session int
	start   uint64
}

// Fields of /proc/PID/stat after the name, from 0 (proc(5) counts the state
// as the third).
const (
	fieldState   = 0
	fieldParent  = 1
	fieldSession = 3
	fieldStart   = 19
)

// errStat is the error for a stat file of an unknown shape.
var errStat = errors.New("it is not of the form that proc(5) describes")

// process reads one process. The name stands in brackets and may itself hold
// spaces and brackets, so the fields count from the last one.
func (h Host) process(pid int) (process, error) {
	text, err := h.read(strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	_, after, found := cutLast(text, []byte(") "))
	fields := strings.Fields(string(after))
	if !found || len(fields) <= fieldStart {
		return process{}, fmt.Errorf("process %d: %w", pid, errStat)
	}
	p := process{state: fields[fieldState]}
	p.parent, err = strconv.Atoi(fields[fieldParent])
	session, err2 := strconv.Atoi(fields[fieldSession])
	start, err3 := strconv.ParseUint(fields[fieldStart], 10, 64)
	if err := errors.Join(err, err2, err3); err != nil {
		return process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	p.session, p.start = session, start
	return p, nil
}

func cutLast(text, separator []byte) (before, after []byte, found bool) {
	i := bytes.LastIndex(text, separator)
	if i < 0 {
		return text, nil, false
	}
	return text[:i], text[i+len(separator):], true
}
