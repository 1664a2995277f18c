//go:build linux && (amd64 || arm64)

package filelock

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// How a wait in the kernel is ended: by a signal to the waiting thread. sleeper_linux.go decides when. The package doc
// says what that means for a program's own signals.

const (
	// topSignal and bottomSignal are the signals that may serve, from the last but two down. Others take the last ones
	// most often, and the C library those from 32 up.
	topSignal    syscall.Signal = 62
	bottomSignal syscall.Signal = 50
)

// saRestart makes the kernel restart a system call that the signal interrupted. Package syscall does not name it.
const saRestart = 0x10000000

// sigaction is the kernel's struct on amd64 and arm64, which is not the C library's.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// sigsetSize is the size of the kernel's signal set, in bytes.
const sigsetSize = 8

// interrupter ends system calls of this process's threads by a signal that does nothing else.
type interrupter struct {
	handler uintptr // Go's own signal handler
}

// newInterrupter makes one signal able to interrupt system calls. It returns nil if there is none to be had.
func newInterrupter() *interrupter {
	var golang sigaction
	// Which handler is Go's is known from SIGURG, which the runtime itself uses.
	if getAction(syscall.SIGURG, &golang) != nil {
		return nil
	}
	in := &interrupter{handler: golang.handler}
	if _, ok := in.signal(); !ok {
		return nil
	}
	return in
}

// signal returns the first signal that interrupts system calls and does nothing else. It looks each time, because the
// program may have changed the action meanwhile: signal.Ignore and a following signal.Notify do.
func (in *interrupter) signal() (syscall.Signal, bool) {
	for sig := topSignal; sig >= bottomSignal; sig-- {
		if in.prepare(sig) {
			return sig, true
		}
	}
	return 0, false
}

// prepare reports whether sig has Go's handler, and takes SA_RESTART away from it. Go's handler drops a signal that
// nobody asked for with signal.Notify.
//
// A signal with another handler is not touched, and then it is not sent: the default action would end the process.
func (in *interrupter) prepare(sig syscall.Signal) bool {
	const defaultAction, ignore = 0, 1
	var act sigaction
	if getAction(sig, &act) != nil {
		return false
	}
	if act.handler != in.handler || act.handler == defaultAction || act.handler == ignore {
		return false
	}
	if act.flags&saRestart == 0 {
		return true
	}
	act.flags &^= saRestart
	return setAction(sig, &act) == nil
}

// interrupt ends the system call in which the thread tid of this process is.
func (in *interrupter) interrupt(tid int) {
	sig, ok := in.signal()
	if !ok {
		// The program has told Go to ignore all signals since the wait began. The wait must end all the same, so one
		// of them is handled again. Nobody reads the channel: signals that do not fit are dropped.
		signal.Notify(make(chan os.Signal, 1), topSignal)
		if sig, ok = in.signal(); !ok {
			return
		}
	}
	// The only error is that there is no such thread, but it waits for the wait's end.
	_ = syscall.Tgkill(syscall.Getpid(), tid, sig)
}

// unblockSignals lets the signals through to this thread. A process inherits its mask, and Go leaves it as it is.
func unblockSignals() {
	var set uint64
	for sig := bottomSignal; sig <= topSignal; sig++ {
		set |= 1 << (sig - 1)
	}
	const unblock = 1
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, unblock, uintptr(unsafe.Pointer(&set)), 0, sigsetSize, 0,
		0)
}

func getAction(sig syscall.Signal, act *sigaction) error {
	return rtSigaction(sig, nil, act)
}

func setAction(sig syscall.Signal, act *sigaction) error {
	return rtSigaction(sig, act, nil)
}

// rtSigaction is rt_sigaction(2), which package syscall does not have.
func rtSigaction(sig syscall.Signal, act, old *sigaction) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)),
		uintptr(unsafe.Pointer(old)), sigsetSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
