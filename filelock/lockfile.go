//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// An open lock file: what it holds, and how that ends. flockfile.go and marks_linux.go have the system calls.

// lockFile is an open lock file. It belongs to one Acquire, one hold or the idle files at a time, and so needs no mutex
// but where noted.
type lockFile struct {
	fd   descriptor
	path string
	key  driver.Key // whose file it is
	id   fileID

	turn   turn // of the driver's goroutines that share this file one after the other; see turn.go
	linger linger

	last   uint64    // the last token that this driver has written here
	looked time.Time // when the file was last found at its path

	// The open file that gets what lasts as long as a hold, the flock and its marks, is that of fd, or if borrows that
	// of borrowed. A place in the line is fd's in any case: it ends with this process.
	borrows  bool
	borrowed descriptor
	lent     bool // f got the lock of the borrowed file, and not somebody else who has that file

	slot int // of its record, on locks that several hold at once; 0 if it has none

	// A duplicate of the descriptor was handed out. Guarded by Driver.mu.
	shared bool
}

// holding returns the descriptor of the open file that gets the lock.
func (f *lockFile) holding() descriptor {
	if f.borrows {
		return f.borrowed
	}
	return f.fd
}

// unlock ends whatever f holds. It does so expressly and not by closing. A child that inherited the descriptor, or one
// that is just being forked, has the same open file. The lock would last until the child closes its copy too.
func (f *lockFile) unlock() {
	f.linger.on = false
	if f.borrows {
		f.leaveLine()
		if !f.lent {
			return
		}
		f.lent = false
	}
	// The marks first: otherwise they would for a moment name a holder that has released.
	f.dropMarks()
	f.free()
}

// close ends whatever f holds and closes it.
func (f *lockFile) close() {
	f.unlock()
	if f.linger.timer != nil {
		f.linger.timer.Stop()
	}
	_ = syscall.Close(f.fd)
}
