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

var (
	errNotTheFile  = errors.New("the descriptor is not open on the lock's file, or that was replaced meanwhile")
	errHasLocks    = errors.New("the descriptor has a lock already")
	errNotBothWays = errors.New("the descriptor is not open for reading and writing")
)

// AcquireOn is Acquire on an open file of the caller's, which must be open for reading and writing at [Driver.Path] of
// the lock, and have no lock yet. The hold belongs to that open file: it ends when the last process that has the file
// open has closed it or ended. So a shell keeps a lock that a command took on the shell's descriptor, as by "flock 9".
//
// The driver does not know the hold: Release does not find it, and Close leaves it alone. After an error nothing is
// held.
func (d *Driver) AcquireOn(ctx context.Context, r *driver.Request, file *os.File) (driver.Grant, error) {
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	f, err := d.borrow(r.Key, file)
	if err != nil {
		return driver.Grant{}, err
	}
	defer func() { _ = syscall.Close(f.fd) }() // a duplicate, so what is held stays with the caller's
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
		err = fmt.Errorf("file: %s: %w", f.path, errNotTheFile)
	}
	if err = d.leave(r, a, err); err != nil {
		f.unlock()
		return driver.Grant{}, err
	}
	return g, nil
}

// borrow returns file as a lock file, with a descriptor of our own of the same open file.
func (d *Driver) borrow(key driver.Key, file *os.File) (*lockFile, error) {
	f := &lockFile{path: d.path(key), key: key}
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, pathError("descriptor for", f.path, err)
	}
	var failed error
	err = conn.Control(func(fd uintptr) { f.fd, failed = duplicate(int(fd)) })
	if err = errors.Join(err, failed); err != nil {
		return nil, pathError("descriptor for", f.path, err)
	}
	if err := f.usable(); err != nil {
		_ = syscall.Close(f.fd)
		return nil, fmt.Errorf("file: %s: %w", f.path, err)
	}
	return f, nil
}

// usable checks an open file that is not of our making.
func (f *lockFile) usable() error {
	if err := f.identify(); err != nil {
		return err
	}
	switch same, err := f.atPath(); {
	case err != nil:
		return err
	case !same:
		return errNotTheFile
	}
	switch {
	case !opensBothWays(f.fd):
		return errNotBothWays
	case hasLocks(f.fd):
		return errHasLocks
	}
	return nil
}

// opensBothWays reports whether fd is open for reading and writing: it asks for nothing to be read, and written.
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
