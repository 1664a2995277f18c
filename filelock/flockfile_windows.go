package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"github.com/interlock-go/interlock/driver"
)

// The same system calls on Windows. It locks a byte of an open file (LockFileEx) for that handle alone. It frees it
// when the last handle of the open file is closed, also by the end of its process. Such locks are mandatory: the byte
// lies far behind every record, so that all can read who holds the lock.

// descriptor is an open file.
type descriptor = syscall.Handle

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

// Errors that package syscall does not name.
const (
	errTooManyOpenFiles = syscall.Errno(4)
	errWriteProtect     = syscall.Errno(19)
	errSharingViolation = syscall.Errno(32)
	errLockViolation    = syscall.Errno(33)
	errHandleEOF        = syscall.Errno(38)
	errHandleDiskFull   = syscall.Errno(39)
	errDiskFull         = syscall.Errno(112)
)

// fileID is empty: a file cannot be replaced while it is open; see openAt.
type fileID struct{}

// openLockFile opens the lock file at path, or creates it, and the folder if somebody has removed that.
func openLockFile(path, dir string) (*lockFile, error) {
	fd, err := openAt(path, syscall.O_RDWR|syscall.O_CREAT, 0)
	if err == syscall.ERROR_PATH_NOT_FOUND {
		if err := makeFolder(dir); err != nil {
			return nil, pathError("lock folder", dir, err)
		}
		fd, err = openAt(path, syscall.O_RDWR|syscall.O_CREAT, 0)
	}
	if errors.Is(err, errTooManyOpenFiles) {
		err = syscall.EMFILE // open closes idle files then
	}
	if err != nil {
		return nil, pathError("lock file", path, err)
	}
	return &lockFile{fd: fd, path: path}, nil
}

// openAt opens path for locking. The handle is not inherited. It does not share the right to delete, so that nobody
// removes, renames or replaces the file while anybody has it open.
func openAt(path string, flags int, _ uint32) (descriptor, error) {
	name, err := syscall.UTF16PtrFromString(literal(path))
	if err != nil {
		return syscall.InvalidHandle, err
	}
	access, how := uint32(syscall.GENERIC_READ), uint32(syscall.OPEN_EXISTING)
	if flags&syscall.O_RDWR != 0 {
		access |= syscall.GENERIC_WRITE
	}
	if flags&syscall.O_CREAT != 0 {
		how = syscall.OPEN_ALWAYS
	}
	return syscall.CreateFile(name, access, syscall.FILE_SHARE_READ|syscall.FILE_SHARE_WRITE, nil, how,
		syscall.FILE_ATTRIBUTE_NORMAL, 0)
}

// literal returns path in the form that Windows takes as it stands. Otherwise nul.mutex would be a device, and long
// paths would be refused.
func literal(path string) string {
	path = filepath.FromSlash(path)
	switch {
	case strings.HasPrefix(path, `\\?\`), !filepath.IsAbs(path):
		return path
	case strings.HasPrefix(path, `\\`):
		return `\\?\UNC` + path[1:]
	}
	return `\\?\` + path
}

func (f *lockFile) identify() error { return nil }

// atPath is always true: see openAt.
func (f *lockFile) atPath() (bool, error) { return true, nil }

// lockedByte is the offset of the byte that is locked.
const lockedByte = 1 << 62

// place returns where the locked byte is.
func (f *lockFile) place() *syscall.Overlapped {
	return &syscall.Overlapped{OffsetHigh: lockedByte >> 32}
}

// tryLock takes the lock if it is free: nil, or EWOULDBLOCK.
func (f *lockFile) tryLock() error {
	const exclusive, failImmediately = 2, 1
	ok, _, err := lockFileEx.Call(uintptr(f.fd), exclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(f.place())))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return syscall.EWOULDBLOCK
	}
	return err
}

// awaitLock only tries: all waits poll here.
func (f *lockFile) awaitLock() error { return f.tryLock() }

// free gives the lock back.
func (f *lockFile) free() {
	_, _, _ = unlockFileEx.Call(uintptr(f.fd), 0, 1, 0, uintptr(unsafe.Pointer(f.place()))) // it may hold none
}

func (f *lockFile) duplicate() (*os.File, error) {
	return nil, fmt.Errorf("file: a lock of Windows cannot be handed to a child: %w", driver.ErrUnsupported)
}

func at(offset int64) *syscall.Overlapped {
	return &syscall.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
}

// pread reads what is at an offset.
func pread(fd descriptor, p []byte, offset int64) (int, error) {
	var n uint32
	err := syscall.ReadFile(fd, p, &n, at(offset))
	if errors.Is(err, errHandleEOF) {
		err = nil
	}
	return int(n), err
}

// pwrite writes p to an offset, in one call.
func pwrite(fd descriptor, p []byte, offset int64) (int, error) {
	var n uint32
	err := syscall.WriteFile(fd, p, &n, at(offset))
	return int(n), err
}

// writable creates a file and removes it. Rights are lists here, and only a try tells what they allow.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return reason(err)
	}
	_ = f.Close()
	return reason(os.Remove(f.Name()))
}

func adviceForErrno(errno syscall.Errno) string {
	switch errno {
	case syscall.ERROR_ACCESS_DENIED:
		return "give this user write access to the folder and its files, or name another folder"
	case errWriteProtect:
		return "name a folder on a writable disk"
	case errDiskFull, errHandleDiskFull:
		return "free space on its disk"
	case errSharingViolation:
		return "another program has the file open for itself alone, perhaps a backup or a scanner"
	case syscall.EMFILE, errTooManyOpenFiles:
		return "this process has too many open files"
	case syscall.ERROR_PATH_NOT_FOUND, syscall.ERROR_ALREADY_EXISTS:
		return "a part of the path is a file; name a folder"
	}
	return ""
}
