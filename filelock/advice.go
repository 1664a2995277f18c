//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import "syscall"

// What to do about an error of the system, in words. errors.go asks for it.

// adviceForErrno returns what to do about errno, or "" if that is not known.
func adviceForErrno(errno syscall.Errno) string {
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
	case syscall.EISDIR:
		return "a folder stands where the lock file belongs; remove it, or name another folder"
	case syscall.ENXIO, syscall.ENODEV:
		return "remove what stands where the lock file belongs, or name another folder"
	case syscall.ELOOP:
		return "lock files must not be symbolic links; remove it"
	case syscall.ENAMETOOLONG:
		return "the path is too long; name a folder with a shorter path"
	case syscall.ENOLCK, syscall.EOPNOTSUPP, syscall.ENOSYS:
		return "the file system does not support flock; name a folder on a local one"
	}
	return ""
}
