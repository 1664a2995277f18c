//go:build linux && (amd64 || arm64)

package filelock

import (
	"syscall"
	"testing"
	"unsafe"
)

func TestNewInterrupter_ChangesOneFlagOfOneSignal(t *testing.T) {
	rerun(t, nil, func(t *testing.T) {
		const last = 64
		var before, after [last + 1]sigaction
		for sig := syscall.Signal(1); sig <= last; sig++ {
			_ = getAction(sig, &before[sig]) // no action for some numbers
		}
		for range 2 { // once more, with what the first has changed
			if newInterrupter() == nil {
				t.Fatal("there is no signal to interrupt with")
			}
		}
		for sig := syscall.Signal(1); sig <= last; sig++ {
			_ = getAction(sig, &after[sig])
			want := before[sig]
			if sig == topSignal {
				want.flags &^= saRestart
			}
			if after[sig] != want {
				t.Errorf("signal %d: %+v became %+v, want %+v", sig, before[sig], after[sig], want)
			}
		}
	})
}

func TestInterrupter_WithForeignHandlers_TakesAnotherOrNone(t *testing.T) {
	rerun(t, nil, func(t *testing.T) {
		in := newInterrupter()
		for sig := topSignal; sig >= bottomSignal; sig-- {
			if got, ok := in.signal(); !ok || got != sig {
				t.Fatalf("got %d, %v, want %d", got, ok, sig)
			}
			if err := setAction(sig, &sigaction{}); err != nil { // the default action, which would end the process
				t.Fatal(err)
			}
		}
		if newInterrupter() != nil {
			t.Error("a signal that ends the process is taken")
		}
		d := open(t, t.TempDir())
		if _, polls := d.newWaiter(t.Context()).(poller); !polls {
			t.Error("without a signal the driver does not poll")
		}
	})
}

// blockSignals blocks all the signals that may be used, in this thread.
func blockSignals(t *testing.T) {
	t.Helper()
	set := uint64(1)<<topSignal - uint64(1)<<(bottomSignal-1)
	const block = 0
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, block, uintptr(unsafe.Pointer(&set)), 0, sigsetSize,
		0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
}
