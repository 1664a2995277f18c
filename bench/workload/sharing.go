package workload

import (
	"time"

	"github.com/interlock-go/interlock/bench/peer"
)

// inside is what is done under the lock, and sees whether those are inside who may be. The time of a job that shares is
// spent idle, as one who waits for a disk or another server spends it: there are fewer processors than may be inside.
func (w *witness) inside(worker peer.Worker, j *Job) error {
	switch shared, is := worker.(peer.Shared); {
	case j.Sharing == peer.Nobody:
		w.step(j.Hold)
		return nil
	case j.Sharing == peer.Several:
		return w.count(j.Hold)
	case is && shared.Reads():
		return w.read(j.Hold)
	default:
		return w.write(j.Hold)
	}
}

// count is among peer.Permits at most.
func (w *witness) count(hold time.Duration) error {
	defer w.number.Add(-1)
	if w.number.Add(1) > peer.Permits {
		return ErrOverlap
	}
	time.Sleep(hold)
	return nil
}

// write makes the number odd while it works.
func (w *witness) write(hold time.Duration) error {
	n := w.number.Load()
	if n%2 != 0 || !w.number.CompareAndSwap(n, n+1) {
		return ErrOverlap
	}
	time.Sleep(hold)
	if !w.number.CompareAndSwap(n+1, n+2) {
		return ErrOverlap
	}
	return nil
}

// read sees no writer, and no write meanwhile.
func (w *witness) read(hold time.Duration) error {
	n := w.number.Load()
	time.Sleep(hold)
	if n%2 != 0 || w.number.Load() != n {
		return ErrOverlap
	}
	return nil
}
