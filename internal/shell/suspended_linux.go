package shell

import (
	"syscall"
	"time"
	"unsafe"
)

// How long the machine was suspended, on Linux. package trust takes it off the window.

const (
	clockMonotonic = 1 // CLOCK_MONOTONIC stands still while the machine is suspended; Go's monotonic clock is this one.
	clockBoottime  = 7 // CLOCK_BOOTTIME runs on.
)

// MachineSuspended returns how long this machine has been suspended since it was started. It makes two system calls.
// The wall clock would not do: it also moves when it is set.
func MachineSuspended() time.Duration {
	boot, ok := readClock(clockBoottime)
	mono, ok2 := readClock(clockMonotonic)
	if !ok || !ok2 {
		return 0
	}
	// The boot clock was read first. So a pause of this thread in between makes the result smaller. It never reports a
	// suspension that was none, and the next look makes up for it.
	return boot - mono
}

// readClock reads a clock of the kernel; false means that it has no such clock.
func readClock(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
