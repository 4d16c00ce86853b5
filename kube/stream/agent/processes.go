package agent

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// descendants lists the processes that come from root, as /proc tells. A
// supervisor adopts the orphans among its descendants (it is a subreaper), so
// none can leave this list by forking twice or by making a session of its own.
func descendants(root int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil && !p.dead {
			children[p.parent] = append(children[p.parent], pid)
		}
	}
	var found []int
	for next := children[root]; len(next) > 0; {
		found = append(found, next...)
		var below []int
		for _, pid := range next {
			below = append(below, children[pid]...)
		}
		next = below
	}
	return found, nil
}

var errStat = errors.New("/proc/PID/stat cannot be read")

// process is what /proc tells of a process.
type process struct {
	parent, session int
	// dead is true for a zombie.
	dead bool
	// busy is true for one that runs, or would, or waits for the disk.
	busy bool
	// used is the processor's time that it and the children that it has waited
	// for have used, in ticks.
	used int64
}

// readProcess reads /proc/PID/stat (proc(5)). The name in brackets may hold
// anything, so the fields are counted from its end.
func readProcess(pid int) (process, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	text := string(b)
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, errStat
	}
	// state, parent, group, session, …; its times are the 12th to the 15th.
	fields := strings.Fields(text[end+1:])
	if len(fields) < 15 {
		return process{}, errStat
	}
	p := process{dead: fields[0] == "Z" || fields[0] == "X", busy: fields[0] == "R" || fields[0] == "D"}
	var err1, err2 error
	p.parent, err1 = strconv.Atoi(fields[1])
	p.session, err2 = strconv.Atoi(fields[3])
	for _, time := range fields[11:15] {
		ticks, err := strconv.ParseInt(time, 10, 64)
		if err != nil {
			return process{}, errStat
		}
		p.used += ticks
	}
	return p, errors.Join(err1, err2)
}

// endSession kills the processes of a session whose supervisor is gone, until
// none is left. Those that made a session of their own cannot be found any
// more.
func endSession(session int) {
	for started := time.Now(); time.Since(started) < killPatience; time.Sleep(treePause) {
		if killSession(session) == 0 {
			return
		}
	}
}

// killSession kills a session's processes and says how many it found.
func killSession(session int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	found := 0
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, err := readProcess(pid); err == nil && p.session == session && !p.dead {
				found++
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
			}
		}
	}
	return found
}

// Times of endTree.
const (
	treePause = 20 * time.Millisecond
	// killPatience is how long KILL is repeated. A process that outlives it
	// belongs to another user or hangs in the kernel.
	killPatience = 10 * time.Second
)

// endTree ends all descendants of root: TERM, then after grace, or once hurry
// is closed, KILL until none is left. It says whether none is. Somebody else
// has to reap them.
func endTree(root int, grace time.Duration, hurry <-chan struct{}) bool {
	signalAll(root, syscall.SIGTERM)
	for over := time.After(grace); ; {
		if left, err := descendants(root); err == nil && len(left) == 0 {
			return true
		}
		select {
		case <-over:
		case <-hurry:
		case <-time.After(treePause):
			continue
		}
		break
	}
	for started := time.Now(); time.Since(started) < killPatience; time.Sleep(treePause) {
		if signalAll(root, syscall.SIGKILL) == 0 {
			return true
		}
	}
	return false
}

func signalAll(root int, signal syscall.Signal) int {
	list, err := descendants(root)
	if err != nil {
		return -1
	}
	for _, pid := range list {
		_ = syscall.Kill(pid, signal) // it may have ended meanwhile
	}
	return len(list)
}
