package filelock

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// Beside the flock, processes mark bytes of the lock file with OFD locks (open file description locks, fcntl), which
// flock(2) does not see on local Linux file systems, nor the other way round. Like the flock they belong to the open
// file and end with it. The bytes lie far behind every record; the file does not grow by them.
//
// On a mutex the marks serve order and inspection, and exclusion does not rest on them: where a file system or sandbox
// knows no OFD locks, their errors are ignored and waiters stand at the flock itself, in no line. Read/write locks and
// semaphores need them, see gate_linux.go.
const (
	firstMark = 1 << 62

	// turnstile is held by the first waiter, who alone stands at the flock; the others stand at the turnstile. Without
	// it the releaser that asks again would nearly always win against the waiter that the kernel is just waking.
	turnstile = firstMark

	// waiting is shared by all waiters. It tells of them also in the moment in which the turnstile has been left and
	// the next waiter is still waking up.
	waiting = firstMark + 1

	// held is shared, so that the mark of a new holder does not collide with one whose process is just ending. It is
	// set after the record was written and so vouches for it: a flock without this mark is flock(1)'s, or a few
	// microseconds young. Asking for it disturbs nobody, unlike trying the flock.
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

func mark(fd, how int, kind int16, from, count int64) error {
	l := syscall.Flock_t{Type: kind, Start: from, Len: count}
	return syscall.FcntlFlock(uintptr(fd), how, &l)
}

func setMark(fd int, kind int16, from, count int64) error {
	for {
		if err := mark(fd, ofdSet, kind, from, count); err != syscall.EINTR {
			return err
		}
	}
}

// marked reports whether somebody else has marked one of the bytes. It changes nothing.
func marked(fd int, from, count int64) bool {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: from, Len: count}
	err := syscall.FcntlFlock(uintptr(fd), ofdGet, &l)
	return err == nil && l.Type != syscall.F_UNLCK
}

func (f *lockFile) othersWait() bool { return marked(f.fd, turnstile, 2) }

func (f *lockFile) joinLine() { _ = setMark(f.fd, syscall.F_RDLCK, waiting, 1) }

func (f *lockFile) leaveLine() { _ = setMark(f.fd, syscall.F_UNLCK, turnstile, 2) }

func (f *lockFile) tryTurnstile() error {
	return orUnmarked(setMark(f.fd, syscall.F_WRLCK, turnstile, 1))
}

// awaitTurnstile sleeps in the kernel until f stands first in the line; a signal ends it with EINTR.
func (f *lockFile) awaitTurnstile() error {
	return orUnmarked(mark(f.fd, ofdSetWait, syscall.F_WRLCK, turnstile, 1))
}

// orUnmarked lets go on to the flock whoever cannot have a turnstile at all.
func orUnmarked(err error) error {
	if err == syscall.EINTR || err == syscall.EAGAIN || err == syscall.EACCES {
		return err
	}
	return nil
}

func (f *lockFile) markHeld() { _ = setMark(f.holding(), syscall.F_RDLCK, held, 1) }

func (f *lockFile) dropMarks() { _ = setMark(f.holding(), syscall.F_UNLCK, firstMark, toTheEnd) }

// isHeld reports whether another open file than fd has the lock with a record of ours.
func isHeld(fd int) bool { return marked(fd, held, 1) }

// hasLocks reports whether the open file of fd has a flock or a mark. Without /proc that is not known.
func hasLocks(fd int) bool {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	return bytes.Contains(info, []byte("\nlock:"))
}

// giveWay lets a waiter run that was woken but is not running yet. It is called by who would queue behind others: with
// all processors busy and short holds, it would otherwise reach the free turnstile first, and get more than its share.
//
// It is a raw system call, because a usual one costs a visit to the Go scheduler each time.
func giveWay() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
