//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/interlock-go/interlock/driver"
)

// A lock on an open file of somebody else's, such as a shell's descriptor 9. Only the flock and its marks go there; the
// place in the line stays with a file of this process.

// AcquireOn is Acquire on an open file of the caller's, which must be open for reading and writing at [Driver.Path] of
// the lock, and have no lock yet ([ErrHasLocks]). The hold belongs to that open file: it ends when the last process
// that has the file open has closed it or ended. So a shell keeps a lock that a command took on the shell's descriptor,
// as by "flock 9".
//
// If several ask at once with the same open file, one gets the lock and the others are refused. For this Linux needs a
// file system with open file description locks, and /proc; without them a request is refused. Other systems cannot
// tell: there each of them may get the lock, so let only one ask.
//
// The driver does not know the hold: Release does not find it, and Close leaves it alone. After an error nothing is
// held that was not held before.
func (d *Driver) AcquireOn(ctx context.Context, r *driver.Request, file *os.File) (driver.Grant, error) {
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	f, err := d.borrow(r.Key, file)
	if err != nil {
		return driver.Grant{}, err
	}
	defer f.dispose()
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	a, _, err := d.begin(ctx, r)
	switch {
	case err != nil:
		return driver.Grant{}, err
	case a == nil:
		return driver.Grant{}, fmt.Errorf("the request holds %s %q by another file: %w", r.Kind, r.Name,
			driver.ErrConflict)
	}
	g, err := d.lock(ctx, a, r, f)
	if errors.Is(err, errMoved) {
		err = pathError("lock file", f.path, errNotTheFile)
	}
	if err = d.leave(r, a, err); err != nil {
		f.unlock()
		return driver.Grant{}, err
	}
	return g, nil
}

// borrow opens the lock's file for a hold that is to belong to the caller's open file. The place in the line does not
// belong there: it must end if this process is killed, whoever else has the caller's file.
func (d *Driver) borrow(key driver.Key, file *os.File) (*lockFile, error) {
	if d.looks {
		return nil, errLooks
	}
	f, err := openLockFile(d.path(key), d.dir)
	if err != nil {
		return nil, err
	}
	f.key = key
	if err := f.borrow(file); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// borrow has what f will hold belong to the open file of file.
func (f *lockFile) borrow(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return pathError("descriptor for", f.path, err)
	}
	own := -1
	var failed error
	err = conn.Control(func(fd uintptr) { own, failed = duplicate(int(fd)) })
	if err = errors.Join(err, failed); err != nil {
		return pathError("descriptor for", f.path, err)
	}
	if err := fit(own, f.id); err != nil {
		_ = syscall.Close(own)
		return pathError("lock file", f.path, err)
	}
	f.borrows, f.borrowed = true, own
	return nil
}

// vacant refuses a borrowed open file that got a lock after it was borrowed. Other processes that have the file may ask
// too, and to the kernel they are all one. Each would get the lock, and the failure of one would take it from another.
// The caller has the turnstile until it has taken the flock: it is f's own, so of all that borrow the file one at a
// time looks and takes.
func (f *lockFile) vacant() error {
	if !f.borrows || f.lent {
		return nil
	}
	return unlocked(f.borrowed)
}

// unlocked refuses an open file that has a lock, or of which that is not known: an error must let nobody in.
func unlocked(fd int) error {
	has, err := hasLocks(fd)
	if has {
		return ErrHasLocks
	}
	return err
}

// got notes whether the borrowed open file has its lock by f.
func (f *lockFile) got(err error) error {
	f.lent = f.borrows && (f.lent || err == nil)
	return err
}

// dispose closes f, and leaves what it holds to the caller's open file.
func (f *lockFile) dispose() {
	_ = syscall.Close(f.borrowed)
	_ = syscall.Close(f.fd)
}

// fit says what is wrong with an open file that is to get a lock of the file id, or returns nil.
func fit(fd int, id fileID) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case idOf(&st) != id:
		return errNotTheFile
	case !opensBothWays(fd):
		return errNotBothWays
	}
	return unlocked(fd)
}

// opensBothWays reports whether fd is open for reading and writing, as marks need it. It asks for nothing to be read,
// and for nothing to be written, so it changes nothing.
func opensBothWays(fd int) bool {
	_, reading := pread(fd, nil, 0)
	_, writing := pwrite(fd, nil, 0)
	return reading != syscall.EBADF && writing != syscall.EBADF
}

// leave takes the attempt, which became no hold of this driver, out of the table. It returns why what was acquired is
// to be given back, or nil.
func (d *Driver) leave(r *driver.Request, a *attempt, err error) error {
	defer d.running.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.done != nil {
		close(a.done)
	}
	delete(d.attempts, r.ID)
	switch {
	case a.ended == nil:
		return err
	case errors.Is(a.ended, errUndone):
		return errGone(r.Key)
	}
	return a.ended
}
