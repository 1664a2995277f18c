package workload

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// witness is a number in memory that all processes of a run share. Whoever has the lock reads it, works, and writes one
// more: two who are inside at once lose one of their steps. So every measurement proves that what it measured was a lock.
type witness struct {
	memory []byte
	number *atomic.Int64 // atomic only so that the race detector sees a way from one holder to the next
}

const witnessBytes = 8

// openWitness maps the file at path, which it makes if it is missing.
func openWitness(path string) (*witness, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(witnessBytes)
	var memory []byte
	if err == nil {
		memory, err = syscall.Mmap(int(f.Fd()), 0, witnessBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return &witness{memory: memory, number: (*atomic.Int64)(unsafe.Pointer(&memory[0]))}, nil
}

// step is what is done inside: busy work that lasts for hold. The time goes on while the process does not run, so a
// holder that loses its processor does not hold for longer because of that.
func (w *witness) step(hold time.Duration) {
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
