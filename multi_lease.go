package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// The holds of a Multi (multi.go) in one handle: it ends when one of them does.

// MultiLease is the holds that a [Multi] has taken together. It is safe for concurrent use. The zero value cannot be
// used, nor can a copy.
//
// When one of them is lost, the owner has lost what it took them for: Lost is closed and contexts made by Context are
// cancelled. The others stay held until Unlock, so that nobody sees half of the work meanwhile.
type MultiLease struct {
	_      core.NoCopy
	leases []*core.Hold // in the order given; nil where one has not been taken yet
	owner  *core.Owner

	// Guards what follows. It is a leaf, except that it is never held while Machine.Mu is taken.
	mu       sync.Mutex
	lost     chan struct{}
	loss     error // the *LostError of the first hold that was lost
	left     bool  // one of the holds was released
	released bool  // Unlock was called
	contexts core.Endings
}

func newMultiLease(o *core.Owner, n int) *MultiLease {
	return &MultiLease{leases: make([]*core.Hold, n), owner: o, lost: make(chan struct{})}
}

// add takes in the hold at place i, or says why it has ended already. From then on its end reaches l.ended.
func (l *MultiLease) add(i int, lease *core.Hold) error {
	l.leases[i] = lease
	return shell.WatchHold(lease, &shell.LeaseContext{Ending: core.Ending{Cancel: l.ended}})
}

// ended notes that one of the holds has ended, and cancels the contexts. It is called without Machine.Mu, because a
// cancellation runs the user's functions.
func (l *MultiLease) ended(cause error) {
	l.mu.Lock()
	if errors.Is(cause, ErrLost) && l.loss == nil {
		l.loss = cause
		close(l.lost)
	}
	l.left = l.left || errors.Is(cause, ErrReleased)
	contexts := l.contexts.Take()
	l.mu.Unlock()
	for _, w := range contexts {
		w.End(cause)
	}
}

// cutShort returns what ended the taking of all the holds, if one that was taken has ended. That is a loss, or Close,
// because nobody else can have released it yet. Otherwise it returns err.
func (l *MultiLease) cutShort(key driver.Key, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.loss != nil:
		return l.loss
	case l.left || errors.Is(err, ErrReleased):
		return shell.Wrap("lock", key, ErrClosed)
	}
	return err
}

// Leases returns the holds, one for each distinct lock, in the order in which the locks were given. Each has a token
// and a stamp of its own.
func (l *MultiLease) Leases() []*Lease {
	shell.PanicOn(l.checkMade())
	leases := make([]*Lease, len(l.leases))
	for i, h := range l.leases {
		leases[i] = leaseOf(h)
	}
	return leases
}

// Err returns nil while all of the holds may be trusted, and otherwise the *LostError or ErrReleased of one that may
// not. It looks at the clock itself and asks no engine.
func (l *MultiLease) Err() error {
	if err := l.checkMade(); err != nil {
		return err
	}
	for _, lease := range l.leases {
		if err := shell.EndOf(lease); err != nil {
			return err
		}
	}
	return nil
}

// Lost returns a channel that is closed when one of the holds is lost. It is not closed by a release.
func (l *MultiLease) Lost() <-chan struct{} {
	shell.PanicOn(l.checkMade())
	return l.lost
}

// Context returns a context for the work under the locks. It is cancelled when parent is, and when one of the holds
// ends, with its cause; see [Lease.Context]. It carries the owner of all of them.
func (l *MultiLease) Context(parent context.Context) context.Context {
	shell.PanicOn(shell.CheckCall(l.checkMade(), parent))
	ctx, cancel := l.context(parent)
	if err := l.Err(); err != nil {
		cancel(err)
	}
	return ctx
}

// context is Context; it also works while not all of the holds have been taken.
func (l *MultiLease) context(parent context.Context) (context.Context, context.CancelCauseFunc) {
	w := &shell.LeaseContext{Holds: l.leases, Again: l.Context}
	ctx := w.Begin(parent, l.owner)
	forget := func() { l.contexts.Forget(&w.Ending, l.mu.Lock, l.mu.Unlock) }
	w.Ending.Stop = context.AfterFunc(parent, forget)
	l.mu.Lock()
	l.contexts.Add(&w.Ending)
	l.mu.Unlock()
	return ctx, func(cause error) {
		if w.Ending.Stop() {
			forget()
		}
		w.Ending.Cancel(cause)
	}
}

// taken returns the holds that have been taken so far.
func (l *MultiLease) taken() []*core.Hold {
	return slices.DeleteFunc(slices.Clone(l.leases), func(lease *core.Hold) bool { return lease == nil })
}

// Unlock ends all of the holds, side by side. It tries every one, whatever becomes of the others, and returns the
// errors of those that could not be released, joined; see [Lease.Unlock]. The error of a second Unlock matches
// ErrReleased. It costs one request for each lock, all sent at once: the time of one round trip.
func (l *MultiLease) Unlock(ctx context.Context) error {
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if !l.firstUnlock() {
		return l.secondUnlockError()
	}
	return shell.Together(l.leases, func(lease *core.Hold) error { return shell.Unlock(ctx, lease) })
}

// unlockInTime is Unlock for Multi.Do; see Lease.unlockInTime.
func (l *MultiLease) unlockInTime(ctx context.Context) error {
	if !l.firstUnlock() {
		return l.secondUnlockError()
	}
	return shell.Together(l.leases, func(lease *core.Hold) error { return shell.UnlockInTime(ctx, lease) })
}

// secondUnlockError is the error of a second Unlock.
func (l *MultiLease) secondUnlockError() error {
	names := make([]string, len(l.leases))
	for i, lease := range l.leases {
		names[i] = strconv.Quote(lease.Lock.Key().Name)
	}
	return fmt.Errorf("interlock: unlock %s: %w", strings.Join(names, ", "), ErrReleased)
}

// firstUnlock reports whether this is the first Unlock.
func (l *MultiLease) firstUnlock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.released
	l.released = true
	return first
}

// giveBack ends what was taken of a Multi that cannot be had whole. Nothing was done under it, so it has no MinHold.
// What the engine does not confirm by the end of ctx, or within CloseTimeout, goes on in the background.
func (l *MultiLease) giveBack(ctx context.Context) {
	l.ended(ErrReleased)
	taken := l.taken()
	if len(taken) == 0 {
		return
	}
	// The release repeats itself, and Observers are told.
	_ = shell.Together(taken, func(lease *core.Hold) error { return shell.GiveBackHold(ctx, lease) })
}
