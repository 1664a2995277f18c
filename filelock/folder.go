//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/interlock-go/interlock/driver"
)

// The folder: made, checked and made absolute once, when the driver is made.

// folderMode is for folders that this package creates: nobody else sees who locks what. An operator who wants to share
// locks creates the folder.
const folderMode = 0o700

// openFolder makes sure that dir is a folder in which this process can lock, unless it only looks. It returns the
// absolute path, so that a later change of the working directory does not lead elsewhere.
func openFolder(dir string, looks bool) (string, error) {
	if dir == "" {
		return "", errors.New("the lock folder's path is empty")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", pathError("lock folder", dir, err)
	}
	if looks {
		if err := mayBecomeFolder(abs); err != nil {
			return "", lookError(abs, err)
		}
		return abs, nil
	}
	if err := makeFolder(abs); err != nil {
		return "", pathError("lock folder", abs, err)
	}
	if err := writable(abs); err != nil {
		return "", pathError("lock folder", abs, err)
	}
	return abs, nil
}

// mayBecomeFolder returns why dir is no folder and cannot become one, or nil. One that is not there yet can.
func mayBecomeFolder(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return reason(err)
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	return nil
}

// lookError is pathError for a driver that only looks at the folder: it needs the right to read alone.
func lookError(dir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return pathError("lock folder", dir, err)
	}
	return &driver.RefusedError{
		Err:  fmt.Errorf("lock folder %s: %w", dir, err),
		Hint: "give this user the right to read the folder, or name another one",
	}
}

// makeFolder creates dir and the folders on the way, if they are missing.
func makeFolder(dir string) error { return reason(os.MkdirAll(dir, folderMode)) }

// reason strips the path from an error of package os, because pathError says it.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
