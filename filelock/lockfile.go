//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// lockFile is an open lock file.
type lockFile struct {
	fd   descriptor
	path string
	key  driver.Key // whose file it is
	id   fileID

	turn   turn // of who has the lock, or had it last
	linger linger

	last   uint64    // the last token that was written here
	looked time.Time // when it was last found at its path

	// The open file that gets what lasts as long as a hold, the flock and its marks, is that of fd; if borrows, that of
	// borrowed. A place in the line is fd's in any case: it ends with this process.
	borrows  bool
	borrowed descriptor
	lent     bool // the borrowed one has got its lock by f, and not by somebody else who has that file

	slot int // of its record, on locks that several hold at once; see slots_linux.go

	// shared is set when a duplicate of the descriptor was handed out. Guarded by Driver.mu.
	shared bool
}

// holding is the descriptor of the open file that gets the lock.
func (f *lockFile) holding() descriptor {
	if f.borrows {
		return f.borrowed
	}
	return f.fd
}

// unlock ends whatever f holds. It does so expressly and not by closing: a child that inherited the descriptor, or one
// that is just being forked, has the same open file, and the lock would last until it closes its copy too.
func (f *lockFile) unlock() {
	f.linger.on = false
	if f.borrows {
		f.leaveLine()
		if !f.lent {
			return
		}
		f.lent = false
	}
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
