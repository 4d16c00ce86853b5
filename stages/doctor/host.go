package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/socialweb-computer/tenant-executor/stages"
)

// folderFacts is what is known of the state folder.
type folderFacts struct {
	path string
	info fs.FileInfo
	// err is why it cannot be looked at.
	err error
	// writeErr is why nothing can be written into it, or why it cannot be made
	// where it is not there.
	writeErr error
	// foreign is whose it is, where this user is neither that one nor root, who
	// may look after the runner of another; "" otherwise.
	foreign string
	// network is the kind of a file system that other hosts may share, "" for
	// one of this host.
	network string
}

func judgeState(f folderFacts) Result {
	const remedy = "give it to the runner's user with mode 0700, or name another folder with state.dir; jobs run without it, and what it remembers is lost"
	switch {
	case errors.Is(f.err, fs.ErrNotExist) && f.writeErr == nil:
		return ok("%s is not there yet; the first job makes it", f.path)
	case errors.Is(f.err, fs.ErrNotExist):
		return warning(fmt.Sprintf("%s is not there and cannot be made by this user: %v", f.path, reason(f.writeErr)), "install -d -m 700 -o THE-RUNNERS-USER "+f.path)
	case f.err != nil:
		return warning(fmt.Sprintf("%s: %v", f.path, reason(f.err)), remedy)
	case !f.info.IsDir():
		return warning(f.path+" is not a folder", remedy)
	}
	mode := f.info.Mode().Perm()
	switch {
	case mode&writableByOthers != 0:
		return warning(fmt.Sprintf("%s has mode %04o, so that others can write to it: the driver does not use it", f.path, mode), "chmod 700 "+f.path)
	case f.foreign != "":
		return warning(fmt.Sprintf("%s belongs to user %s: the driver uses it only as that user", f.path, f.foreign), remedy)
	case f.writeErr != nil:
		return warning(fmt.Sprintf("%s cannot be written to: %v", f.path, reason(f.writeErr)), remedy)
	case f.network != "":
		return warning(fmt.Sprintf("%s is on %s: hosts that share it take each other's processes for their own", f.path, f.network), "name a folder of this host alone with state.dir")
	case mode&readableByAll != 0:
		return ok("%s, writable, mode %04o (0700 is enough)", f.path, mode)
	}
	return ok("%s, writable, mode %04o", f.path, mode)
}

// leftoverFacts are the leftovers of one runner.
type leftoverFacts struct {
	runner string
	found  []stages.Leftover
	// elsewhere counts the Pods of the runner's processes on other hosts.
	elsewhere map[string]int
	err       error
}

func judgeLeftovers(all []leftoverFacts) Result {
	var texts, remedies []string
	for _, one := range all {
		if one.err != nil && len(one.found) == 0 {
			return warning(one.err.Error(), "see to the checks above, and try again")
		}
		if len(one.found) == 0 {
			continue
		}
		reasons := map[string]int{}
		for _, l := range one.found {
			reasons[string(l.Reason)]++
		}
		var parts []string
		for why, n := range reasons {
			parts = append(parts, fmt.Sprintf("%d %s", n, why))
		}
		slices.Sort(parts)
		texts = append(texts, fmt.Sprintf("%d of runner %s: %s", len(one.found), one.runner, strings.Join(parts, ", ")))
		remedies = append(remedies, "tenant-executor reap --runner "+one.runner)
	}
	if len(texts) > 0 {
		return warning(strings.Join(texts, "; "), strings.Join(remedies, "; "))
	}
	others := map[string]int{}
	for _, one := range all {
		for host, n := range one.elsewhere {
			others[host] += n
		}
	}
	if len(others) > 0 {
		var parts []string
		for host, n := range others {
			parts = append(parts, fmt.Sprintf("%d of host %s", n, host))
		}
		slices.Sort(parts)
		return ok("none that this host can tell; Pods of the same runner on other hosts: %s", strings.Join(parts, ", "))
	}
	return ok("none")
}
