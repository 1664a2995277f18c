//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// How a hold ends: by a release, an undo, or a descriptor that was handed out. The file then lingers (linger.go) or
// lies idle (idle.go).

// Release ends the hold with r's ID. It does so although ctx has ended: nothing is waited for, except that an Undo
// waits for the Acquire of the same ID to leave.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	if r.Undo {
		return d.undo(ctx, r)
	}
	f := d.takeHold(r)
	if f == nil {
		return fmt.Errorf("%s %q: there is no such hold: %w", r.Kind, r.Name, driver.ErrLost)
	}
	d.giveBack(f)
	return nil
}

// takeHold removes the hold with r's ID from the table, and returns its file, or nil if there is none. The caller must
// pass the file to giveBack or end, for which Close waits. The holds of a closed driver are left to Close.
func (d *Driver) takeHold(r *driver.Release) *lockFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.attempts[r.ID]
	if a == nil || !a.isHold() || a.key != r.Key || d.closed {
		return nil
	}
	delete(d.attempts, r.ID)
	d.gone.Bury(r.ID, struct{}{})
	d.running.Add(1)
	return a.file
}

// undo takes away whatever the Acquire of r's ID has taken or will take. The ID is buried first, so that a copy that
// comes meanwhile is refused.
func (d *Driver) undo(ctx context.Context, r *driver.Release) error {
	d.mu.Lock()
	d.gone.BuryUntil(r.ID, time.Now().Add(r.Horizon))
	a := d.attempts[r.ID]
	if a == nil || a.isHold() {
		d.mu.Unlock()
		if f := d.takeHold(r); f != nil {
			f.turn = turn{} // nobody will come back
			d.end(f)
		}
		return nil
	}
	a.stop(errUndone)
	over := a.over()
	d.mu.Unlock()
	select {
	case <-over:
		return nil
	case <-ctx.Done(): // unknown: the caller asks again
		return ctx.Err()
	}
}

// giveBack is end for a holder that may come back at once: f may linger for it.
func (d *Driver) giveBack(f *lockFile) {
	now := time.Now()
	linger := f.mayLinger(d.pace, now)
	f.turn.free(d.pace, now)
	if !linger {
		d.end(f)
		return
	}
	defer d.running.Done()
	f.stay(d.pace, now)
	d.lay(f)
}

// end frees f, which is in no table any more, and keeps it for the next Acquire.
func (d *Driver) end(f *lockFile) {
	defer d.running.Done()
	f.unlock()
	d.lay(f)
}

// lay keeps f for the next Acquire. A shared file is closed: a lock taken on it again would be the other process's too.
func (d *Driver) lay(f *lockFile) {
	d.mu.Lock()
	spare := f
	if !d.closed && !f.shared {
		if spare = d.idle.put(f); spare != f && f.linger.on {
			d.arm(f)
		}
	}
	d.mu.Unlock()
	if spare != nil {
		spare.close()
	}
}

// File returns a duplicate of the descriptor with which this driver holds the lock key. A process that inherits it (see
// [os/exec.Cmd.ExtraFiles]) holds the lock as well. If this process is killed, the lock stays held until the other has
// closed the descriptor or ended. A Release here frees the lock for both. The caller closes the file when the other
// process has started; closing it ends nothing.
//
// If this driver does not hold the lock, the error matches driver.ErrNotHeld.
func (d *Driver) File(key driver.Key) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.attempts {
		if a.isHold() && a.key == key {
			a.file.shared = true
			return a.file.duplicate()
		}
	}
	return nil, fmt.Errorf("%s %q: %w", key.Kind, key.Name, driver.ErrNotHeld)
}

// tombstones remember the IDs that must not be granted again. A copy of a request cannot be under way for long here:
// there is no network, only a goroutine of this process.
type tombstones = enginekit.Tombstones[string, struct{}]
