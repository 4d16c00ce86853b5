package crash

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// numberOfStderr is where the runtime writes what it says of a crash, whatever
// os.Stderr is.
const numberOfStderr = 2

// Quiet gives this process's stderr another number, under which it is returned, and
// leaves the usual one leading nowhere.
//
// Go catches a panic nowhere but in its own goroutine. Libraries start goroutines as
// well, and there are errors that are not caught at all: two goroutines write one
// map, memory or stack is used up. Then the runtime writes a stack trace to stderr,
// which is the job log, and ends the process with exit code 2, which cannot be
// changed from within; it is what GitLab Runner sets SYSTEM_FAILURE_EXIT_CODE to
// (executors/custom/api/consts.go). debug.SetTraceback cannot silence it: it goes
// below no level that the environment sets, and the environment is read before main.
// So nothing can be said in the job log either; see Keep.
func Quiet() (*os.File, error) {
	number, err := unix.FcntlInt(numberOfStderr, unix.F_DUPFD_CLOEXEC, numberOfStderr+1)
	if err != nil {
		return nil, fmt.Errorf("giving stderr another number: %w", err)
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(unix.Dup3(int(nowhere.Fd()), numberOfStderr, 0), nowhere.Close())
	}
	if err != nil {
		_ = unix.Close(number)
		return nil, fmt.Errorf("taking stderr from the runtime: %w", err)
	}
	return os.NewFile(uintptr(number), "/dev/stderr"), nil
}

// longestFile is how large a file may be to which a crash is added, in bytes.
const longestFile = 1 << 20

// Keep has what the runtime says of a crash added to a file, which is for this user
// alone.
func Keep(path string) error {
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | unix.O_NOFOLLOW
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the runtime has its own
	if info, err := file.Stat(); err == nil && info.Size() > longestFile {
		if err := file.Truncate(0); err != nil {
			return err
		}
	}
	return debug.SetCrashOutput(file, debug.CrashOptions{})
}
