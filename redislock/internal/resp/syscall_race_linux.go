//go:build race

package resp

import "syscall"

// Under the race detector the calls are the usual ones, which tell it that what was read comes after what was written.
// Or it would report what two clients of one process do one after the other, under a lock, as a race.

func readNow(fd uintptr, b []byte) (int, error)  { return syscall.Read(int(fd), b) }
func writeNow(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
