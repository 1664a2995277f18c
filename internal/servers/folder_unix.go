//go:build unix

package servers

import (
	"os"
	"path/filepath"
	"syscall"
)

// claim locks a folder for this process, with a lock that ends with it: the servers that it starts do not inherit it.
// It reports false if another process has it, or has removed it meanwhile.
func claim(dir string, create int) (alive *os.File, locked bool) {
	path := filepath.Join(dir, aliveName)
	alive, err := os.OpenFile(path, os.O_RDWR|create, 0o600)
	if err != nil {
		return nil, false
	}
	if syscall.Flock(int(alive.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		own, err := alive.Stat()
		there, gone := os.Stat(path)
		if err == nil && gone == nil && os.SameFile(own, there) {
			return alive, true
		}
	}
	_ = alive.Close()
	return nil, false
}
