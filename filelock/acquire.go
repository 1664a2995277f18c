//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// From a request to a grant: the file at the lock's path, its flock, the comparison with the path, and the record with
// a new token, in this order. queue.go has the wait, linger.go the short cut, gate_linux.go locks that several may
// hold.

// maxRestarts ends the search for a file that stays at its path. Hundreds of removals within one Acquire do not happen;
// file systems without stable inode numbers exist.
const maxRestarts = 1000

// Acquire takes the flock of the lock's file. When ctx ends first, nothing is held and nothing waits, and the error is
// the context's.
//
// It serves requests of anonymous owners on mutexes and elections, and on Linux also on semaphores and on read/write
// locks, except for upgradeable reads. Others get an error matching driver.ErrUnsupported. Lease and Lost of the
// request mean nothing to this engine.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	a, g, err := d.begin(ctx, r)
	if a == nil {
		return g, err
	}
	f, g, err := d.take(ctx, a, r)
	return d.settle(r, a, f, g, err)
}

// servable refuses what this engine cannot do, before a file is opened.
func servable(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind) || several(r.Kind) && !tellsHolders:
		return fmt.Errorf("file: locks of kind %s: %w", r.Kind, driver.ErrUnsupported)
	case r.Mode == driver.Upgradeable:
		return fmt.Errorf("file: upgradeable reads, as %s: %w", noConversion, driver.ErrUnsupported)
	case (r.Kind == driver.KindMutex || r.Kind == driver.KindElection) && r.Mode != driver.Exclusive:
		return fmt.Errorf("file: only exclusive holds: %w", driver.ErrUnsupported)
	case r.Kind == driver.KindSemaphore && (r.Mode == driver.Exclusive || r.Limit > maxLimit):
		return fmt.Errorf("file: a semaphore has shared holds and a limit of at most %d: %w", maxLimit,
			driver.ErrUnsupported)
	case r.Kind == driver.KindSemaphore && (r.Weight < 1 || r.Weight > r.Limit):
		return fmt.Errorf("the weight %d is not from one to the limit %d: %w", r.Weight, r.Limit, driver.ErrConflict)
	case r.Named:
		return fmt.Errorf("file: named owners, as the kernel knows descriptors, not owners: %w", driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("file: a lock's name has 1 to %d bytes, not %d", maxName, len(r.Name))
	}
	return nil
}

// take locks the file that is at the lock's path and mints the token. On an error nothing is held. The file of a Try
// that was refused is kept, because an Acquire that waits usually follows.
func (d *Driver) take(ctx context.Context, a *attempt, r *driver.Request) (*lockFile, driver.Grant, error) {
	for range maxRestarts {
		f, err := d.open(r.Key)
		if err != nil {
			return nil, driver.Grant{}, err
		}
		g, err := d.lock(ctx, a, r, f)
		if err == nil {
			return f, g, nil
		}
		if errors.Is(err, driver.ErrHeld) {
			d.lay(f)
			return nil, driver.Grant{}, err
		}
		f.close()
		if !errors.Is(err, errMoved) {
			return nil, driver.Grant{}, err
		}
	}
	return nil, driver.Grant{}, pathError("lock file", d.path(r.Key), errRestless)
}

// errMoved says that the locked file is not the one at the path, so its lock excludes nobody who comes later.
var errMoved = errors.New("the lock file was removed or replaced")

// lock gets the flock on f and mints the token. The comparison with the path comes after the flock and before the
// grant: see lockFile.atPath.
func (d *Driver) lock(ctx context.Context, a *attempt, r *driver.Request, f *lockFile) (driver.Grant, error) {
	if several(r.Kind) {
		return d.lockInside(ctx, a, r, f)
	}
	now := time.Now()
	f.turn.ask(d.pace, now)
	// A lock that lingers is this driver's already: no system call.
	ours := f.takeOver(now)
	if !ours {
		if err := d.flock(ctx, a, r, f, now); err != nil {
			return driver.Grant{}, err
		}
		now = time.Now()
	}
	if !ours || now.Sub(f.looked) >= lookAround {
		switch same, err := f.atPath(); {
		case err != nil:
			return driver.Grant{}, err
		case !same:
			return driver.Grant{}, errMoved
		}
		f.looked = now
	}
	return d.mint(r, f, ours, now)
}

// flock gets the flock on f. If nobody waits, or if this driver's turn is not over, it tries first; a Try does no more
// than that.
func (d *Driver) flock(ctx context.Context, a *attempt, r *driver.Request, f *lockFile, now time.Time) error {
	others := f.othersWait()
	stay := others && f.turn.lasts(d.pace, now)
	if !others || stay {
		if err := f.tryAlone(r, d.pace.gate); err != syscall.EWOULDBLOCK {
			if stay {
				f.turn.contended = true
			} else {
				f.turn.begin(now, false)
			}
			return f.flockError(err)
		}
	}
	// In front of waiters a Try fails although the flock may be free: otherwise tries would starve them.
	if r.Try {
		return d.refuse(r, f, others && now.Sub(f.turn.freed) < d.pace.turn)
	}
	if err := d.queue(ctx, a, r, f, others); err != nil {
		return err
	}
	f.turn.begin(time.Now(), true)
	return nil
}

// flockError says what is wrong with a flock that neither succeeded nor was refused.
func (f *lockFile) flockError(err error) error {
	if err == nil {
		return nil
	}
	return pathError("lock file", f.path, err)
}

// mint writes the record with new tokens into f, whose lock it has. The grant is made of what was written: if writing
// fails, no token was given out.
//
// A hold that takes over a lingering lock need not read the record, because nobody else has written since, and the mark
// is still there.
func (d *Driver) mint(r *driver.Request, f *lockFile, ours bool, now time.Time) (driver.Grant, error) {
	last := f.last
	if !ours {
		var err error
		if last, err = d.lastToken(f); err != nil {
			return driver.Grant{}, err
		}
	}
	if d.now != nil {
		now = d.now()
	}
	first, n, err := nextTokens(last, now, r.Tokens)
	if err != nil {
		return driver.Grant{}, pathError("lock file", f.path, err)
	}
	rec := &record{
		First: first, Last: first + uint64(n) - 1, Since: now, PID: d.pid,
		Name: r.Name, Owner: r.Owner, Client: r.Client, Label: r.Label,
	}
	err = writeRecord(f.fd, 0, rec)
	if err == nil && f.slot > 0 {
		// It tells operators who is inside, and nothing else. On a full disk a slot that nobody has had before has no
		// place for it; the permits are free all the same.
		if err = writeRecord(f.fd, f.slot, rec); isFull(err) {
			d.logger.Warn("the disk is full: the holder will be listed without its name", "path", f.path, "err", err)
			err = nil
		}
	}
	if err != nil {
		return driver.Grant{}, pathError("lock file", f.path, err)
	}
	f.last = first + uint64(n) - 1
	if !ours {
		f.markHeld()
	}
	// No hold re-enters another here, so the ID, which is never reused, is as good a nonce as any.
	return driver.Grant{Token: first, Tokens: n, Nonce: r.ID}, nil
}

// isFull reports whether a write failed because the disk has no place for it.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, io.ErrShortWrite)
}

// lastToken reads the last token from f. A damaged record is no error, because the clock alone gives a larger token; it
// is logged, because it should not happen.
func (d *Driver) lastToken(f *lockFile) (uint64, error) {
	last, err := readLastToken(f.fd)
	switch {
	case errors.Is(err, errBadRecord):
		d.logger.Warn("lock file is damaged or foreign: the next token rests on the clock alone", "path", f.path)
	case err != nil && !errors.Is(err, errNoRecord):
		return 0, pathError("lock file", f.path, err)
	}
	return last, nil
}

// Path returns the path of the lock's file, which need not be there yet. On the file of a mutex flock(1) and flock(2)
// take part. A shell holds the lock for as long as it has the file open and flocked.
func (d *Driver) Path(key driver.Key) string { return d.path(key) }

func (d *Driver) path(key driver.Key) string { return d.dir + "/" + fileName(key) }

// open returns an open file for key that nobody else in this process uses. Two holds on one open file would be one to
// the kernel.
func (d *Driver) open(key driver.Key) (*lockFile, error) {
	if d.looks {
		return nil, errLooks
	}
	d.mu.Lock()
	f := d.idle.take(key)
	d.mu.Unlock()
	if f != nil {
		return f, nil
	}
	path := d.path(key)
	f, err := openLockFile(path, d.dir)
	// Idle files are only a saving, so they go first when descriptors run out.
	if errors.Is(err, syscall.EMFILE) && d.closeIdle() > 0 {
		f, err = openLockFile(path, d.dir)
	}
	if err != nil {
		return nil, err
	}
	f.key = key
	return f, nil
}

// closeIdle closes the idle files and returns how many there were.
func (d *Driver) closeIdle() int {
	d.mu.Lock()
	files := d.idle.clear()
	d.mu.Unlock()
	for _, f := range files {
		f.close()
	}
	return len(files)
}
