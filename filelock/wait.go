//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"
)

// How a wait waits: asleep in the kernel (sleeper_linux.go), or by polling where that could not be ended. queue.go and
// gate_linux.go say for what.

// stage is one thing to wait for. block sleeps in the kernel until it has it or a signal comes (EINTR); try asks once
// (EWOULDBLOCK).
type stage struct {
	block, try func() error
}

// waiter waits for the stages of one Acquire, in its goroutine. The wait ends with ctx, with which the waiter was made;
// the error is then the context's.
type waiter interface {
	wait(ctx context.Context, s stage) error
	stop()
}

// maxSleepers bounds the waits in the kernel, because each keeps a thread and the Go runtime ends a program that has
// 10,000. Waits beyond it poll.
const maxSleepers = 512

// newWaiter returns a sleeper while there are few of them and waits in the kernel can be ended, and else a poller.
func (d *Driver) newWaiter(ctx context.Context) waiter {
	if d.sleepers.Add(1) <= maxSleepers {
		if in := d.interrupter(); in != nil {
			return newSleeper(ctx, in, &d.sleepers)
		}
	}
	d.sleepers.Add(-1)
	return poller{}
}

const (
	// Bounds of a poller's pauses. The first are short because most holds are.
	minPause = 1 * time.Millisecond
	maxPause = 25 * time.Millisecond
)

// poller tries again and again. It costs no thread, wakes for nothing, and comes up to maxPause late.
type poller struct{}

// wait tries, and sleeps between the tries for pauses that double up to maxPause. EACCES, of record locks, means the
// same as EWOULDBLOCK: another has it.
func (poller) wait(ctx context.Context, s stage) error {
	pause := minPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		err := s.try()
		if err != syscall.EWOULDBLOCK && err != syscall.EACCES {
			return err
		}
		select {
		case <-ctx.Done(): // the caller's context, Close or Undo
			return ctx.Err()
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
		timer.Reset(pause/2 + rand.N(pause/2)) // jitter keeps pollers from coming all at once
	}
}

func (poller) stop() {}

// waitError explains what ended a wait for f, if it was neither the lock nor the context.
func (d *Driver) waitError(f *lockFile, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) || errors.Is(err, ErrHasLocks) {
		return pathError("lock file", f.path, err)
	}
	return err
}
