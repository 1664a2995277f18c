//go:build !race

package resp

import (
	"syscall"
	"unsafe"
)

func readNow(fd uintptr, b []byte) (int, error)  { return callNow(syscall.SYS_READ, fd, b) }
func writeNow(fd uintptr, b []byte) (int, error) { return callNow(syscall.SYS_WRITE, fd, b) }

// callNow makes a system call of which Go's scheduler is not told.
func callNow(trap, fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
