package locktest

import (
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// Inside sees whether two are inside one lock at once, by what their leases say themselves at one instant, and whether
// tokens grow. It needs no luck: who enters looks at who was in before.
type Inside struct {
	Name  string
	Blind bool // only tokens are compared

	t testing.TB

	mu      sync.Mutex // guards what follows
	last    *interlock.Lease
	token   uint64
	entries int
}

// NewInside returns the watch of one lock.
func NewInside(t testing.TB, name string) *Inside { return &Inside{Name: name, t: t} }

// Enter notes that l is held. Both leases are asked after l's Lock has returned, so if both may be trusted then two are
// in.
func (w *Inside) Enter(l *interlock.Lease) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	other, otherErr := w.last, error(nil)
	if other != nil {
		otherErr = other.Err()
	}
	if l.Err() != nil {
		return // it stood still for too long on its way here
	}
	if other != nil && otherErr == nil && !w.Blind {
		w.t.Errorf("%q: tokens %d and %d are both held; the first one's lease ends in %v, the second's in %v",
			w.Name, other.Token(), l.Token(), time.Until(other.Deadline()), time.Until(l.Deadline()))
	}
	if l.Token() <= w.token {
		w.t.Errorf("%q: token %d after %d", w.Name, l.Token(), w.token)
	}
	w.last, w.token = l, l.Token()
	w.entries++
}

// Entries returns how many have been inside.
func (w *Inside) Entries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entries
}
