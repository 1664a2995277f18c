package filelock

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Locks that let several holders in at once: read/write locks and semaphores. Everybody who comes in does so through a
// gate, alone. The gate is the turnstile of the mutex (marks_linux.go), but also taken when nobody waits. The first in
// the line keeps it while it waits for those inside. So readers who keep coming cannot starve a writer, nor small
// requests a big one. Tokens are minted and slots chosen under the gate as well. All that is held belongs to one open
// file. So gate, place in the line, flock and slot end together, by a release or with the process.
//
// A writer holds the flock exclusively. Readers and holders of permits share it, which also keeps the file from being
// removed under its lock. Permits are counted by the marks in the slots (slots_linux.go). docs/rationale.md, Files, has
// the decision.

// lockInside is lock for such a lock. On an error the caller closes or unlocks f, which ends whatever f has got so far.
func (d *Driver) lockInside(ctx context.Context, a *attempt, r *driver.Request, f *lockFile) (driver.Grant, error) {
	err := f.tryInside(r, d.pace.gate)
	if err == syscall.EWOULDBLOCK {
		if r.Try {
			f.unlock()
			return driver.Grant{}, d.refuse(r, f, false)
		}
		err = d.queueInside(ctx, a, r, f)
	}
	if err != nil {
		return driver.Grant{}, d.waitError(f, err)
	}
	switch same, err := f.atPath(); {
	case err != nil:
		return driver.Grant{}, err
	case !same:
		return driver.Grant{}, errMoved
	}
	if f.slot, err = freeSlot(f.fd); err != nil {
		return driver.Grant{}, pathError("lock file", f.path, err)
	}
	g, err := d.mint(r, f, false, time.Now())
	if err != nil {
		return driver.Grant{}, err
	}
	if err := f.markSlot(r); err != nil {
		return driver.Grant{}, pathError("lock file", f.path, err)
	}
	// Last of all: the gate is what keeps the slot, the token and the count of permits in one piece.
	f.leaveLine()
	return g, nil
}

// tryInside gets f through the gate, the flock and the permits without waiting: nil, EWOULDBLOCK, or what is wrong.
// What it has got it keeps, so that a wait can go on from there.
func (f *lockFile) tryInside(r *driver.Request, patience time.Duration) error {
	if err := f.sameLimit(r); err != nil { // at once, whoever is at the gate
		return err
	}
	if err := f.tryGate(r, patience); err != nil {
		return err
	}
	if err := f.tryFlock(flockMode(r)); err != nil {
		return err
	}
	return f.tryPermits(r)
}

// gatePause is between two looks of a Try at a gate that somebody is just going through, which takes some microseconds.
const gatePause = 20 * time.Microsecond

// tryGate takes the gate, unless somebody waits there. A Try after which nobody waits must not be refused only because
// others are on their way in. So it looks again until patience is over. Short and even pauses give it a chance among
// many that come and go.
func (f *lockFile) tryGate(r *driver.Request, patience time.Duration) error {
	if !r.Try || r.SkipHolder { // a wait follows
		patience = 0
	}
	for start := time.Now(); ; time.Sleep(gatePause) {
		if marked(f.fd, waiting, 1) {
			return syscall.EWOULDBLOCK
		}
		if err := f.enterGate(); err != syscall.EWOULDBLOCK || time.Since(start) >= patience {
			return err
		}
	}
}

// tryAlone is tryLock of a request that stands in no line. On a borrowed open file the look at it and its flock must be
// one step among all that borrow it (see vacant), so it goes through the gate of the other kinds, which the first in
// the line has as its turnstile.
func (f *lockFile) tryAlone(r *driver.Request, patience time.Duration) error {
	if !f.borrows {
		return f.tryLock()
	}
	if err := f.tryGate(r, patience); err != nil {
		return err
	}
	defer f.leaveLine()
	return f.tryLock()
}

// enterGate takes the gate if it is free: nil, EWOULDBLOCK, or errNoMarks.
func (f *lockFile) enterGate() error {
	return gateError(setMark(f.fd, syscall.F_WRLCK, turnstile, 1))
}

// awaitGate sleeps in the kernel until f has the gate; a signal ends it with EINTR.
func (f *lockFile) awaitGate() error {
	return gateError(mark(f.fd, ofdSetWait, syscall.F_WRLCK, turnstile, 1))
}

// gateError keeps out everybody who cannot have the gate. On a mutex the turnstile is for order alone, so there its
// errors are ignored.
func gateError(err error) error {
	switch err {
	case nil, syscall.EINTR:
		return err
	case syscall.EAGAIN, syscall.EACCES:
		return syscall.EWOULDBLOCK
	}
	return fmt.Errorf("%w: %w", errNoMarks, err)
}

// queueInside waits for the gate, then for the flock, then for the permits. The caller leaves the line.
func (d *Driver) queueInside(ctx context.Context, a *attempt, r *driver.Request, f *lockFile) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.mayWait(a, cancel); err != nil {
		return err
	}
	news := d.newNews(r, f)
	defer news.stop()
	f.joinLine()
	news.tell() // from now on nobody who tries gets ahead

	w := d.newWaiter(ctx)
	defer w.stop()
	if err := w.wait(ctx, stage{block: f.awaitGate, try: f.enterGate}); err != nil {
		return err
	}
	news.tell()
	how := flockMode(r)
	if err := w.wait(ctx, stage{
		block: func() error { return f.awaitFlock(how) },
		try:   func() error { return f.tryFlock(how) },
	}); err != nil {
		return err
	}
	// The kernel can wait for one range of bytes, but not for enough of many: only the first in the line polls.
	if err := f.tryPermits(r); err != syscall.EWOULDBLOCK {
		return err
	}
	return poller{}.wait(ctx, stage{try: func() error { return f.tryPermits(r) }})
}

// flockMode returns how r holds the flock.
func flockMode(r *driver.Request) int {
	if r.Mode == driver.Exclusive {
		return syscall.LOCK_EX
	}
	return syscall.LOCK_SH
}

// sameLimit refuses a request with another limit than that of those inside.
func (f *lockFile) sameLimit(r *driver.Request) error {
	if r.Kind != driver.KindSemaphore {
		return nil
	}
	limit, err := limitOf(f.fd)
	if err != nil {
		return err
	}
	if limit != 0 && limit != r.Limit {
		return fmt.Errorf("the limit is %d while it is in use, not %d: %w", limit, r.Limit, driver.ErrConflict)
	}
	return nil
}

// tryPermits reports whether there are enough permits for r: nil, EWOULDBLOCK, or a conflict of limits. The caller has
// the gate, so that nobody takes them before it does. It costs two system calls for each holder.
func (f *lockFile) tryPermits(r *driver.Request) error {
	if r.Kind != driver.KindSemaphore {
		return nil
	}
	if err := f.sameLimit(r); err != nil {
		return err
	}
	marks, err := slotMarks(f.fd)
	if err != nil {
		return err
	}
	taken := 0
	for _, m := range marks {
		taken += m.weight
	}
	if taken > r.Limit-r.Weight {
		return syscall.EWOULDBLOCK
	}
	return nil
}
