package tenant

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("held by another process")

// LockRoot makes the root folder and waits until no other `up` or `down` works
// below it. The lock is on the folder itself, so that no file of it stays.
func LockRoot(root string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return nil, fmt.Errorf("lock state root: %w", err)
		}
		folder, err := os.Open(root)
		if err != nil {
			if os.IsNotExist(err) {
				continue
			}
			return nil, fmt.Errorf("lock state root: %w", err)
		}
		if err := flock(folder, unix.LOCK_EX); err != nil {
			folder.Close()
			return nil, fmt.Errorf("lock state root %s: %w", root, err)
		}
		// A `down` that had the lock before may have removed the folder:
		// then the lock is on a folder that nobody else will ever find.
		if same(folder, root) {
			return func() { folder.Close() }, nil
		}
		folder.Close()
	}
}

// LockDaemon takes the lock that a running daemon holds until its process
// ends. It gives ErrLocked when the tenant's daemon runs already.
func (t Tenant) LockDaemon() (unlock func(), err error) {
	file, err := os.OpenFile(t.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock tenant: %w", err)
	}
	if err := flock(file, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("tenant %q: %w", t.name, ErrLocked)
		}
		return nil, fmt.Errorf("lock tenant %q: %w", t.name, err)
	}
	return func() { file.Close() }, nil
}

// Running tells whether the tenant's daemon is alive.
func (t Tenant) Running() (bool, error) {
	file, err := os.OpenFile(t.Lock(), os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the tenant's daemon: %w", err)
	}
	defer file.Close()
	err = flock(file, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

func flock(file *os.File, how int) error {
	for {
		err := unix.Flock(int(file.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func same(folder *os.File, path string) bool {
	held, err := folder.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}
