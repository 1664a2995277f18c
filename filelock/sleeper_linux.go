//go:build linux && (amd64 || arm64)

package filelock

import (
	"context"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Waits that sleep in the kernel (wait.go says for what): the thread stays in flock or fcntl until it has the lock or a
// signal comes.

// sleeper waits in the kernel, in the Acquire's own goroutine and thread. When the context ends, a goroutine sends
// signals to that thread until it has left the system call.
type sleeper struct {
	in          *interrupter
	tid         int           // the waiting thread
	left        chan struct{} // closed by stop: the thread has left the system calls
	interrupted chan struct{} // closed by interrupt when it is done
	disarm      func() bool   // of context.AfterFunc: reports whether interrupt will never run
	count       *atomic.Int32 // Driver.sleepers
}

// newSleeper returns a sleeper for the calling goroutine, which must stop it. It keeps its thread until then: the
// signals go there.
func newSleeper(ctx context.Context, in *interrupter, count *atomic.Int32) *sleeper {
	runtime.LockOSThread()
	unblockSignals()
	s := &sleeper{
		in:          in,
		tid:         syscall.Gettid(),
		left:        make(chan struct{}),
		interrupted: make(chan struct{}),
		count:       count,
	}
	s.disarm = context.AfterFunc(ctx, s.interrupt)
	return s
}

// wait blocks in st until it succeeds, fails, or ctx ends.
func (s *sleeper) wait(ctx context.Context, st stage) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		// EINTR is the sleeper's own signal, or one of the program's that does not restart system calls.
		if err := st.block(); err != syscall.EINTR {
			return err
		}
	}
}

// stop gives the thread back. When it returns, no signal is sent to the thread any more: it may run anybody's goroutine
// then.
func (s *sleeper) stop() {
	close(s.left)
	if !s.disarm() {
		<-s.interrupted
	}
	s.count.Add(-1)
	runtime.UnlockOSThread()
}

// Bounds of the pauses between two signals.
const (
	// Bounds of the pauses between two signals.
	firstResend = 200 * time.Microsecond
	lastResend  = 5 * time.Millisecond
)

// interrupt sends signals until the thread has left. One is not always enough. It may come after the waiting goroutine
// has looked at the context and before its thread is in the system call. Then it has no effect.
func (s *sleeper) interrupt() {
	defer close(s.interrupted)
	pause := firstResend
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		s.in.interrupt(s.tid)
		select {
		case <-s.left: // the wait is over
			return
		case <-timer.C: // the signal may have come too early
			pause = min(2*pause, lastResend)
			timer.Reset(pause)
		}
	}
}
