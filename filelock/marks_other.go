//go:build darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// There are no marks outside Linux: the BSDs' byte-range locks meet flock, and belong to the process; those of Windows
// cannot be asked for. So there is no line, and nobody can tell who holds a lock without trying it.

const tellsHolders = false

func (f *lockFile) othersWait() bool { return false }

func (f *lockFile) joinLine() {}

func (f *lockFile) leaveLine() {}

func (f *lockFile) tryTurnstile() error { return nil }

func (f *lockFile) awaitTurnstile() error { return nil }

func (f *lockFile) tryAlone(*driver.Request, time.Duration) error { return f.tryLock() }

func (f *lockFile) markHeld() {}

func (f *lockFile) dropMarks() {}

// isHeld is asked when the lock was found taken. The record is then that of the holder, or of the one before it.
func isHeld(descriptor) bool { return true }

// hasLocks is not known here.
func hasLocks(descriptor) (bool, error) { return false, nil }

func giveWay() {}

// lockInside is never called: servable refuses read/write locks and semaphores here.
func (d *Driver) lockInside(context.Context, *attempt, *driver.Request, *lockFile) (driver.Grant, error) {
	return driver.Grant{}, driver.ErrUnsupported
}

func holders(descriptor) []driver.Holder { return nil }

func limitOf(descriptor) (int, error) { return 0, nil }
