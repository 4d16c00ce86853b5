package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Entry is one process of the machine.
type Entry struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	// start is the time of its start in clock ticks since boot: with the id
	// it names a process for good, since ids are used again.
	start string
}

// Find lists the living processes that are in a control group which owns
// accepts, by its path below the hierarchy. Zombies do not count: on a machine
// whose PID 1 reaps late they stay for a while and can do nothing.
func Find(procfs string, owns func(cgroup string) bool) ([]Entry, error) {
	folders, err := os.ReadDir(procfs)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []Entry
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		entry, ours, err := look(filepath.Join(procfs, folder.Name()), pid, owns)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if ours {
			found = append(found, entry)
		}
	}
	return found, nil
}

// gone tells whether reading failed because the process has ended meanwhile.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

func look(dir string, pid int, owns func(string) bool) (Entry, bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return Entry{}, false, err
	}
	if !inGroup(string(text), owns) {
		return Entry{}, false, nil
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Entry{}, false, err
	}
	state, start, err := parseStat(string(stat))
	if err != nil {
		return Entry{}, false, fmt.Errorf("process %d: %w", pid, err)
	}
	if state == "Z" || state == "X" {
		return Entry{}, false, nil
	}
	cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return Entry{}, false, err
	}
	command := strings.TrimSpace(string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
	return Entry{PID: pid, Command: shorten(command), start: start}, true, nil
}

func shorten(command string) string {
	const most = 120
	if len(command) <= most {
		return command
	}
	return command[:most] + "…"
}

// inGroup reads /proc/PID/cgroup: lines of hierarchy:controllers:path.
func inGroup(text string, owns func(string) bool) bool {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) == 3 && owns(fields[2]) {
			return true
		}
	}
	return false
}

// parseStat reads /proc/PID/stat. The command in it, between parentheses, may
// hold spaces and parentheses of its own (proc(5)).
func parseStat(text string) (state, start string, err error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return "", "", errors.New("stat without a command name")
	}
	fields := strings.Fields(text[end+1:])
	// Field 3 is the state, field 22 the start time.
	if len(fields) < 20 {
		return "", "", errors.New("stat with too few fields")
	}
	return fields[0], fields[19], nil
}

// Kill sends SIGKILL to a process that Find gave, unless its id belongs to
// another process by now.
func Kill(procfs string, entry Entry) error {
	stat, err := os.ReadFile(filepath.Join(procfs, strconv.Itoa(entry.PID), "stat"))
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill process %d: %w", entry.PID, err)
	}
	if _, start, err := parseStat(string(stat)); err != nil || start != entry.start {
		return err
	}
	if err := syscall.Kill(entry.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process %d: %w", entry.PID, err)
	}
	return nil
}
