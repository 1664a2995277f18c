//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// queue waits for the lock on f: first at the turnstile, then, alone, at the flock. The turnstile is left as soon as
// the lock is there, so that the next waiter comes up to the flock while this hold lasts.
//
// Whoever asks while somebody stands in the line queues behind him, the process that releases included. Two who come at
// the same time may swap; and as the kernel wakes the next waiter but does not hand it the turnstile, one who comes in
// the microseconds until that waiter runs may get ahead.
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
	defer f.leaveLine() // first of all: the next waiter can only come up to the flock when this is done
	if err := w.wait(ctx, stage{block: f.awaitTurnstile, try: f.tryTurnstile}); err != nil {
		return err
	}
	news.tell()
	return d.waitError(f, w.wait(ctx, stage{block: f.awaitLock, try: f.tryLock}))
}
