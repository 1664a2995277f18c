//go:build unix

package mysqllock

import (
	"errors"
	"syscall"
)

// peek reports whether there is something to be read from a socket, or its end, and takes nothing. It has to look: what
// came before the goroutine waits wakes nobody.
func peek(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
}
