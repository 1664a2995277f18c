//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"errors"
	"fmt"
	"syscall"
)

// pathError says what failed on which path and what to do about it. It unwraps to the system's error.
func pathError(what, path string, err error) error {
	if advice := adviceFor(err); advice != "" {
		return fmt.Errorf("%s %s: %w: %s", what, path, err, advice)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

func adviceFor(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	switch errno {
	case syscall.EACCES, syscall.EPERM:
		return "give this user write access to the folder and its files, or name another folder"
	case syscall.EROFS:
		return "name a folder on a writable file system"
	case syscall.ENOSPC, syscall.EDQUOT:
		return "free space or inodes on its file system"
	case syscall.EMFILE:
		return "raise this process's limit of open files (ulimit -n)"
	case syscall.ENFILE:
		return "the whole system has too many open files"
	case syscall.ENOTDIR, syscall.EEXIST:
		return "a part of the path is a file; name a folder"
	case syscall.ELOOP:
		return "lock files must not be symbolic links; remove it"
	case syscall.ENAMETOOLONG:
		return "the path is too long; name a folder with a shorter path"
	case syscall.ENOLCK, syscall.EOPNOTSUPP, syscall.ENOSYS:
		return "the file system does not support flock; name a folder on a local one"
	}
	return ""
}
