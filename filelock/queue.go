//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// The line of a mutex: a wait in two stages, at the turnstile and at the flock (marks_linux.go). wait.go waits for
// each.

// queue waits for the lock on f: first at the turnstile, then, alone, at the flock. It leaves the turnstile as soon as
// it has the lock, so that the next waiter comes up to the flock while this hold lasts.
//
// Every client that asks while somebody stands in the line queues behind, the process that releases included. Two that
// come at the same time may swap. The kernel wakes the next waiter but does not hand it the turnstile. So a process
// that comes in the microseconds until that waiter runs may get ahead.
func (d *Driver) queue(ctx context.Context, a *attempt, r *driver.Request, f *lockFile, others bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.mayWait(a, cancel); err != nil {
		return err
	}
	news := d.newNews(r, f)
	defer news.stop()
	news.tell()
	f.joinLine()
	if others {
		giveWay()
	}

	w := d.newWaiter(ctx)
	defer w.stop()
	// Deferred last, so it runs first: the next waiter can only come up to the flock when this is done.
	defer f.leaveLine()
	if err := w.wait(ctx, stage{block: f.awaitTurnstile, try: f.tryTurnstile}); err != nil {
		return d.waitError(f, err)
	}
	news.tell()
	return d.waitError(f, w.wait(ctx, stage{block: f.awaitLock, try: f.tryLock}))
}
