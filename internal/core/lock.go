package core

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// Terms is a lock's options with the client's filled in. It does not change once the lock is made: many Mutexes, holds
// and calls share one.
type Terms struct {
	grants.Terms
	Kind         driver.Kind   // of lock
	Wait         time.Duration // LockOptions.Wait; 0 if the caller's context alone bounds the waiting
	Single       bool          // it never passes on, and each request goes to the engine by itself: an election
	Label, Class string
	LabelFrom    func(context.Context, string) string // nil if all calls have the same label
	OwnLabel     bool                                 // label belongs to one call
	Err          error                                // an invalid name or option; the first call returns it
	// for readers, writers and permits
	Share ShareMode
}

// ShareMode is how a read/write lock or a semaphore is asked for. The zero value is a mutex's.
type ShareMode struct {
	Direct        bool // each request goes to the engine by itself; see internal/shell/direct.go
	Mode          driver.Mode
	Limit, Weight int
	Of            *[3]Lock // the lock of which this is one mode; nil of a semaphore
	Resizes       *Resizes // of the semaphore whose permits these are; nil of other locks
}

// Lock is what a Mutex, a mode of an RWMutex, permits or a candidate is to the core: a name and terms.
type Lock struct {
	Core  *Machine
	Name  string
	Terms *Terms // constant; shared by all locks without options
}

// NewLock returns a lock with terms of its own, in one allocation. c may be nil.
func NewLock(c *Machine, name string, t Terms) *Lock {
	own := &struct {
		lock  Lock
		terms Terms
	}{terms: t}
	own.lock.Core, own.lock.Name, own.lock.Terms = c, name, &own.terms
	return &own.lock
}

// Key returns what the engine knows the lock by. It is composed when it is needed, because holds keep very many locks.
func (m *Lock) Key() driver.Key { return driver.Key{Kind: m.Terms.Kind, Name: m.Name} }

// Compare orders mutexes in the same way in every process: by name, and mutexes of the same name by their store. So the
// name of a store matters only where several stores have a lock of the same name.
func Compare(a, b *Lock) int {
	return cmp.Or(
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Core.Store, b.Core.Store),
	)
}

// NoCopy makes go vet (copylocks) report copies of a struct that has it as a field. It has no size.
type NoCopy struct{}

// Lock is what go vet looks for.
func (*NoCopy) Lock() {}

// Unlock is what go vet looks for.
func (*NoCopy) Unlock() {}

// Resizes says which requests of a Semaphore may have crossed one of its own changes of the limit: the engine has the
// new one before or after s asks with it, and refuses what comes in between as a conflict.
type Resizes struct {
	Limit func() int // with which the semaphore asks now

	mu       sync.Mutex    // guards what follows; nothing is waited for under it
	underWay int           // how many calls of Resize are
	turns    int           // how many have begun or ended
	idle     chan struct{} // closed when none is under way; nil before the first
}

// Begin notes that a call of Resize begins.
func (r *Resizes) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns++
	if r.underWay++; r.underWay == 1 {
		r.idle = make(chan struct{})
	}
}

// End notes that a call of Resize is over.
func (r *Resizes) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns++
	if r.underWay--; r.underWay == 0 {
		close(r.idle)
	}
}

// Seen is what crossed compares with, before a request is sent.
func (r *Resizes) Seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns
}

// Crossed reports whether a Resize was under way since then. It waits for those that are still, or for ctx.
func (r *Resizes) Crossed(ctx context.Context, since int) bool {
	r.mu.Lock()
	idle, underWay := r.idle, r.underWay > 0
	r.mu.Unlock()
	if underWay {
		select {
		case <-idle:
		case <-ctx.Done():
			return false
		}
	}
	return r.Seen() != since || underWay
}
