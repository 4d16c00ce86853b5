package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock lets one build at a time work in the cache folder; the kernel takes the
// lock back when the process ends in whatever way. waiting is called once if
// another build has it.
func lock(ctx context.Context, dir string, waiting func()) (unlock func() error, err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the image cache: %w", err)
	}
	const again = 100 * time.Millisecond
	for told := false; ; told = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the image cache %s: %w", dir, err), file.Close())
		}
		if !told {
			waiting()
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the image cache %s: %w", dir, ctx.Err()), file.Close())
		}
	}
}
