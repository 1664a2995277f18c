package peer

import (
	"context"
	"syscall"
)

// flockOpened is what flock(1) and most code does. It makes the bare system calls: package os would add some of its
// own, which would make the comparison easier for interlock.
func flockOpened() Spec {
	return Spec{
		Name: "flock",
		Does: "bare system calls: open, blocking flock, unlock, close at every acquisition, as flock(1) and most " +
			"code does",
		Open: func(_ context.Context, at Place) (Peer, error) { return opened{dir: at.Dir}, nil },
	}
}

type opened struct{ dir string }

// Worker returns a worker that holds nothing yet.
func (o opened) Worker(name string) (Worker, error) {
	return &openedWorker{path: o.dir + "/" + name}, nil
}

// Close has nothing to close.
func (opened) Close() error { return nil }

type openedWorker struct {
	path string
	fd   int
}

// Lock opens the file and blocks; ctx does not end the wait.
func (w *openedWorker) Lock(context.Context) (err error) {
	if w.fd, err = openFile(w.path); err != nil {
		return err
	}
	return flock(w.fd, syscall.LOCK_EX)
}

// Unlock unlocks and closes.
func (w *openedWorker) Unlock(context.Context) error {
	if err := flock(w.fd, syscall.LOCK_UN); err != nil {
		return err
	}
	return syscall.Close(w.fd)
}

func openFile(path string) (int, error) {
	return syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
}

// flock repeats the call when a signal interrupts it.
func flock(fd, how int) error {
	for {
		if err := syscall.Flock(fd, how); err != syscall.EINTR {
			return err
		}
	}
}
