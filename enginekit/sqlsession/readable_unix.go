//go:build unix

package sqlsession

import (
	"errors"
	"syscall"
)

// readable returns a function that tells whether there is something to read from a socket, including the end of the
// connection. It looks and takes nothing (MSG_PEEK). It also looks before the first wait: what came before that wakes
// nobody.
func readable() func(fd uintptr) bool {
	var one [1]byte
	return func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		return !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR)
	}
}
