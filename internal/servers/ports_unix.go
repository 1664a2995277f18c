//go:build unix

package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// mostReserved bounds the reservations of a process, and the descriptors that they take. After that a
// port may be chosen again.
const mostReserved = 1000

// reserved are this process's.
var reserved struct {
	mu    sync.Mutex
	ports map[int]bool
}

// reserve keeps a port for this process among all that look for ports here, for as long as it lives, and reports
// whether no other has it. Between the choice of a port and the start of its server nobody listens on it, and a server
// may answer for another that could not have the port.
func reserve(port int) bool {
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	full := len(reserved.ports) >= mostReserved
	if full || reserved.ports[port] {
		return full
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("interlock-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return true // there is no telling, as without this
	}
	fd, err := syscall.Open(filepath.Join(dir, strconv.Itoa(port)), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC,
		0o600)
	if err != nil {
		return true
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		_ = syscall.Close(fd) // it has nothing
		return false
	}
	if reserved.ports == nil {
		reserved.ports = make(map[int]bool)
	}
	reserved.ports[port] = true // the descriptor stays open, and with it the reservation
	return true
}
