package workload

import (
	"sync/atomic"
	"syscall"
	"time"
)

// witness is a number in memory that all processes of a run share. Whoever has the lock reads it, works, and writes one
// more: two who are inside at once lose one of their steps. So every measurement proves that what it measured was a
// lock.
type witness struct {
	memory []byte
	number *atomic.Int64 // atomic only so that the race detector sees a way from one holder to the next
}

// openWitness maps the file at path, which it makes if it is missing.
func openWitness(path string) (*witness, error) {
	memory, numbers, err := share(path, 1)
	if err != nil {
		return nil, err
	}
	return &witness{memory: memory, number: &numbers[0]}, nil
}

// step is what is done inside: busy work that lasts for hold. The time goes on while the process does not run, so a
// holder that loses its processor does not hold for longer because of that. A nil witness is for goroutines that all
// have locks of their own.
func (w *witness) step(hold time.Duration) {
	if w == nil {
		return
	}
	n := w.number.Load()
	if hold > 0 {
		for begin := time.Now(); time.Since(begin) < hold; {
		}
	}
	w.number.Store(n + 1)
}

// seen is the number of steps that were not lost.
func (w *witness) seen() int64 { return w.number.Load() }

func (w *witness) close() error { return syscall.Munmap(w.memory) }
