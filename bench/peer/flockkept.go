package peer

import (
	"context"
	"errors"
	"syscall"
)

// flockKept is the least that a lock through the kernel can cost.
func flockKept() Spec {
	return Spec{
		Name: "flock-kept",
		Does: "bare system calls: blocking flock and unlock on a descriptor that each worker keeps open",
		Open: func(_ context.Context, at Place) (Peer, error) { return &kept{dir: at.Dir}, nil },
	}
}

type kept struct {
	dir string
	fds []int
}

// Worker opens the descriptor that the worker keeps: of the same one, all would have the lock at once.
func (k *kept) Worker(name string) (Worker, error) {
	fd, err := openFile(k.dir + "/" + name)
	if err != nil {
		return nil, err
	}
	k.fds = append(k.fds, fd)
	return keptWorker(fd), nil
}

// Close closes the descriptors.
func (k *kept) Close() error {
	var errs []error
	for _, fd := range k.fds {
		errs = append(errs, syscall.Close(fd))
	}
	return errors.Join(errs...)
}

type keptWorker int

// Lock blocks; ctx does not end the wait.
func (w keptWorker) Lock(context.Context) error { return flock(int(w), syscall.LOCK_EX) }

// Unlock unlocks.
func (w keptWorker) Unlock(context.Context) error { return flock(int(w), syscall.LOCK_UN) }
