package filelock

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// Marks: bytes of the lock file that processes lock with OFD locks (open file description locks, fcntl) beside the
// flock. flock(2) does not see them on local Linux file systems, nor the other way round. Like the flock they belong to
// the open file and end with it. The bytes lie far behind every record; the file does not grow by them.
//
// On a mutex the marks serve order and inspection, and exclusion does not rest on them, except among those that borrow
// one open file (borrow.go). Where a file system or sandbox
// knows no OFD locks, their errors are ignored and waiters stand at the flock itself, in no line. Read/write locks and
// semaphores need them; see gate_linux.go.

const (
	firstMark = 1 << 62

	// turnstile is held by the first waiter, who alone stands at the flock; the others stand at the turnstile. Without
	// it a process that releases and asks again would nearly always win against the waiter that the kernel is just
	// waking.
	turnstile = firstMark

	// waiting is shared by all waiters. It also shows them in the moment in which the turnstile has been left and the
	// next waiter is still waking up.
	waiting = firstMark + 1

	// held is shared, so that the mark of a new holder does not collide with that of a process which is just ending. It
	// is set after the record was written and so vouches for it: a flock without this mark is flock(1)'s, or a few
	// microseconds young. Asking for the mark disturbs nobody, unlike trying the flock.
	held = firstMark + 2

	toTheEnd = 0 // all bytes from a mark on, those of slots_linux.go too
)

// Open file description locks, which package syscall does not name.
const (
	ofdGet     = 36 // F_OFD_GETLK
	ofdSet     = 37 // F_OFD_SETLK
	ofdSetWait = 38 // F_OFD_SETLKW
)

const tellsHolders = true

// mark sets or removes a mark; how is one of the commands above.
func mark(fd, how int, kind int16, from, count int64) error {
	l := syscall.Flock_t{Type: kind, Start: from, Len: count}
	return syscall.FcntlFlock(uintptr(fd), how, &l)
}

// setMark is mark without waiting, repeated after signals.
func setMark(fd int, kind int16, from, count int64) error {
	for {
		if err := mark(fd, ofdSet, kind, from, count); err != syscall.EINTR {
			return err
		}
	}
}

// marked reports whether another open file has marked one of the bytes. It changes nothing.
func marked(fd int, from, count int64) bool {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: from, Len: count}
	err := syscall.FcntlFlock(uintptr(fd), ofdGet, &l)
	return err == nil && l.Type != syscall.F_UNLCK
}

// othersWait reports whether anybody waits for f, in one system call.
func (f *lockFile) othersWait() bool { return marked(f.fd, turnstile, 2) }

// joinLine shows that f waits.
func (f *lockFile) joinLine() { _ = setMark(f.fd, syscall.F_RDLCK, waiting, 1) }

// leaveLine ends f's place in the line, and its turnstile.
func (f *lockFile) leaveLine() { _ = setMark(f.fd, syscall.F_UNLCK, turnstile, 2) }

// tryTurnstile takes the first place in the line if it is free: nil, EAGAIN or EACCES.
func (f *lockFile) tryTurnstile() error {
	return f.orUnmarked(setMark(f.fd, syscall.F_WRLCK, turnstile, 1))
}

// awaitTurnstile sleeps in the kernel until f stands first in the line; a signal ends it with EINTR.
func (f *lockFile) awaitTurnstile() error {
	return f.orUnmarked(mark(f.fd, ofdSetWait, syscall.F_WRLCK, turnstile, 1))
}

// orUnmarked lets a waiter that cannot have a turnstile at all go on to the flock, unless the flock of a borrowed open
// file needs it: see vacant.
func (f *lockFile) orUnmarked(err error) error {
	if f.borrows {
		return gateError(err)
	}
	if err == syscall.EINTR || err == syscall.EAGAIN || err == syscall.EACCES {
		return err
	}
	return nil
}

// markHeld shows that f has the lock and has written the record.
func (f *lockFile) markHeld() { _ = setMark(f.holding(), syscall.F_RDLCK, held, 1) }

// dropMarks removes all marks of f.
func (f *lockFile) dropMarks() { _ = setMark(f.holding(), syscall.F_UNLCK, firstMark, toTheEnd) }

// isHeld reports whether another open file than fd has the lock with a record of ours.
func isHeld(fd int) bool { return marked(fd, held, 1) }

// hasLocks reports whether the open file of fd has a flock or a mark. An error, as without /proc or with too many open
// files, says that this is not known.
func hasLocks(fd int) (bool, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	return bytes.Contains(info, []byte("\nlock:")), err
}

// giveWay lets a waiter run that was woken but is not running yet. It is called before queueing behind others. With all
// processors busy and short holds, the caller would otherwise reach the free turnstile first, and get more than its
// share.
//
// It is a raw system call, because a usual one costs a visit to the Go scheduler each time.
func giveWay() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
