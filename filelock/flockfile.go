//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"os"
	"syscall"
)

// The system calls on a lock file, on systems with flock. flockfile_windows.go has the same functions; lockfile.go uses
// both.

// descriptor is an open file.
type descriptor = int

// fileID tells two files apart, as long as one of them is open: after that its inode number may be used again.
type fileID struct {
	dev, ino uint64
}

func idOf(st *syscall.Stat_t) fileID { return fileID{dev: uint64(st.Dev), ino: uint64(st.Ino)} }

// openLockFile opens the lock file at path, or creates it. It first tries to open without O_CREAT. That is cheaper, and
// in a folder with the sticky bit Linux refuses O_CREAT on existing files of others.
func openLockFile(path, dir string) (*lockFile, error) {
	for {
		fd, err := openAt(path, syscall.O_RDWR, 0)
		if err == syscall.ENOENT {
			fd, err = createAt(path, dir)
		}
		if err == syscall.EEXIST {
			continue // another process created it in between
		}
		if err != nil {
			return nil, pathError("lock file", path, err)
		}
		f := &lockFile{fd: fd, path: path}
		if err := f.identify(); err != nil {
			_ = syscall.Close(fd)
			return nil, err
		}
		return f, nil
	}
}

// openAt opens path for locking. A symbolic link is refused: in a folder that others may write it could lead anywhere.
// O_NONBLOCK is for a fifo at the path, on which open would otherwise wait; it means nothing for regular files.
func openAt(path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// createAt creates the lock file with the permissions of its folder, and the folder if somebody has removed it.
func createAt(path, dir string) (int, error) {
	mode, err := fileMode(dir)
	if err == syscall.ENOENT {
		if err := makeFolder(dir); err != nil {
			return -1, err
		}
		mode, err = fileMode(dir)
	}
	if err != nil {
		return -1, err
	}
	fd, err := openAt(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, mode)
	if err != nil {
		return -1, err
	}
	// The umask may have taken bits away that others need to lock the file. A file system without modes refuses: then
	// there is nothing to set.
	_ = syscall.Fchmod(fd, mode)
	return fd, nil
}

// fileMode returns the folder's permission bits without those for execution.
func fileMode(dir string) (uint32, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return 0, err
	}
	return uint32(st.Mode) & 0o666, nil
}

// identify notes which file f is, and refuses what is not a regular file.
func (f *lockFile) identify() error {
	var st syscall.Stat_t
	if err := syscall.Fstat(f.fd, &st); err != nil {
		return pathError("lock file", f.path, err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return pathError("lock file", f.path, errNotRegular)
	}
	f.id = idOf(&st)
	return nil
}

// atPath reports whether f is the file that others find at its path. If it was unlinked, renamed or replaced since it
// was opened, its lock excludes nobody who comes later. The caller has the lock. So whoever removes a file under its
// lock, as the package doc says, cannot do so between this answer and the grant.
func (f *lockFile) atPath() (bool, error) {
	id, err := pathID(f.path)
	if err == syscall.ENOENT || err == syscall.ENOTDIR {
		return false, nil
	}
	if err != nil {
		return false, pathError("lock file", f.path, err)
	}
	return id == f.id, nil
}

// lstatID returns the identity of the file at path; it does not follow a link.
func lstatID(path string) (fileID, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	return idOf(&st), err
}

// tryLock takes the lock if it is free: nil, or EWOULDBLOCK.
func (f *lockFile) tryLock() error { return f.tryFlock(syscall.LOCK_EX) }

// awaitLock sleeps in the kernel until it has the lock; a signal ends it with EINTR.
func (f *lockFile) awaitLock() error { return f.awaitFlock(syscall.LOCK_EX) }

// tryFlock takes the flock in mode how if it is free: nil, or EWOULDBLOCK. A borrowed file must have no lock before, or
// the answer would be about that one; see vacant.
func (f *lockFile) tryFlock(how int) error {
	if err := f.vacant(); err != nil {
		return err
	}
	return f.got(flock(f.holding(), how|syscall.LOCK_NB))
}

// awaitFlock is tryFlock, asleep in the kernel until it has the flock. Unlike flock, it does not repeat the call after
// a signal: EINTR is how its wait is ended.
func (f *lockFile) awaitFlock(how int) error {
	if err := f.vacant(); err != nil {
		return err
	}
	return f.got(syscall.Flock(f.holding(), how))
}

// free gives the flock back.
func (f *lockFile) free() { _ = flock(f.holding(), syscall.LOCK_UN) }

// duplicate returns a second descriptor of the same open file, which has the same lock.
func (f *lockFile) duplicate() (*os.File, error) {
	fd, err := duplicate(f.fd)
	if err != nil {
		return nil, pathError("lock file", f.path, err)
	}
	return os.NewFile(uintptr(fd), f.path), nil
}

// duplicate returns a second descriptor of the same open file.
func duplicate(fd int) (int, error) {
	// No child may be forked between dup and the flag that keeps the descriptor out of it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	own, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(own)
	}
	return own, err
}

// flock repeats flock(2) after signals: only awaitFlock may be ended by one.
func flock(fd, how int) error {
	for {
		if err := syscall.Flock(fd, how); err != syscall.EINTR {
			return err
		}
	}
}

// pread reads what is at offset at.
func pread(fd descriptor, p []byte, at int64) (int, error) {
	for {
		if n, err := syscall.Pread(fd, p, at); err != syscall.EINTR {
			return n, err
		}
	}
}

// pwrite writes p to offset at, in one call.
func pwrite(fd descriptor, p []byte, at int64) (int, error) {
	for {
		if n, err := syscall.Pwrite(fd, p, at); err != syscall.EINTR {
			return n, err
		}
	}
}

// writable asks the kernel, which also knows of read-only mounts. What it says holds for the moment; Acquire reports
// what comes later.
func writable(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}
