package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepCode keeps this program's file in memory, as far as the system allows that, until let is called. The workers are
// the same program. A process that came to a line of code for the first time would else wait there for the disk, and
// nobody could tell that from being late.
func keepCode() (let func(), err error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // what is mapped stays
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	//nolint:gosec // small enough for both
	code, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	_ = unix.Mlock(code) // without the right to that it is as it was
	return func() { _ = unix.Munmap(code) }, nil
}
