package interlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
)

// Who holds: an owner, with all that it holds and how many of its goroutines wait. It travels in the context
// (lease_context.go). owner_holds.go has what it holds, owner_names.go the table of named owners.

// owner is one logical activity, which may spread over goroutines. It travels in contexts, because goroutines have no
// identity. See docs/adr/0009.
type owner struct {
	id string // shown to operators; for a named owner, the name that the engine compares

	// Guards holds. It is a leaf: it may be taken under Client.mu, and nothing that takes a mutex is called under it.
	mu    sync.Mutex
	holds holdings

	// How many goroutines wait as this owner, of all clients. It is 0 while only the goroutine that made an anonymous
	// owner can wait.
	waits atomic.Int32
	named bool
}

type ownerKey struct{}

// WithOwner returns a context in which locks are taken by the owner of that name. The same name is the same owner,
// however often WithOwner is called, by whichever client, and in another process too. It re-enters what it already
// holds, on engines that know owners. So choose names that no unrelated activity can choose, such as a job's or a
// request's id. Without WithOwner each Lock at the top level makes an anonymous owner, which only contexts derived from
// [Lease.Context] carry on.
//
// All of an owner's holds in this process belong together. [AssertHeld] finds each of them. A hold that was lost and
// not unlocked yet makes the owner's next Lock of that mutex fail with the *LostError, whichever context it was taken
// with. Nothing is kept of a name once nobody uses it any more.
//
// A name that is empty, longer than 512 bytes or not UTF-8 is reported by the next Lock. So is an engine without named
// owners (ErrUnsupported). A nil ctx panics.
func WithOwner(ctx context.Context, name string) context.Context {
	panicOn(checkContext(ctx))
	return context.WithValue(ctx, ownerKey{}, names.owner(name))
}

// OwnerFrom returns the name that WithOwner put into ctx or into the context that a lease was taken with. It reports
// false for anonymous owners: they cannot travel to other processes.
func OwnerFrom(ctx context.Context) (string, bool) {
	o := ownerFrom(ctx)
	if o == nil || !o.named {
		return "", false
	}
	return o.id, true
}

// AssertHeld panics unless ctx carries the owner of a live hold of the mutex of that name, on any client of this
// process. It is for functions that rely on their caller to hold a lock. It looks at the clock and asks no engine, so
// it does not prove that the engine still counts the hold.
func AssertHeld(ctx context.Context, name string) {
	if o := ownerFrom(ctx); o != nil {
		for _, l := range o.on(driver.Key{Kind: driver.KindMutex, Name: name}) {
			if l.Err() == nil {
				return
			}
		}
	}
	panic(fmt.Sprintf("interlock: the mutex %q is not held by the owner in this context", name))
}

// ownerFrom returns the owner that ctx carries, or nil.
func ownerFrom(ctx context.Context) *owner {
	panicOn(checkContext(ctx))
	o, _ := ctx.Value(ownerKey{}).(*owner)
	return o
}

// add notes a hold of o, until remove.
func (o *owner) add(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds.add(l)
}

// remove forgets a hold of o. It does nothing if l is not there.
func (o *owner) remove(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds.remove(l)
}

// holdsAny reports whether o has a hold of anything, lost ones included.
func (o *owner) holdsAny() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.any()
}

// several reports whether o has more than one hold, of any locks.
func (o *owner) several() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.several()
}

// on returns the holds on the lock of that key, by whichever client. The slice is a copy, so that the caller may take
// Client.mu.
func (o *owner) on(key driver.Key) []*Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(o.holds.onLock(key))
}

// first returns the oldest hold on that lock of c for which f returns true, or nil. f is called under owner.mu and
// takes no mutex.
func (o *owner) first(c *core, key driver.Key, f func(*Lease) bool) *Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.holds.onLock(key) {
		if l.m.c == c && f(l) {
			return l
		}
	}
	return nil
}

// has reports whether o has a hold on that lock of c, or has lost one and not unlocked it yet.
func (o *owner) has(c *core, key driver.Key) bool {
	return o.first(c, key, func(*Lease) bool { return true }) != nil
}

// heldBy returns a hold of o on key that has not been unlocked yet: a live one, or else a lost one. A lost hold stays
// with its owner until it is unlocked, so that re-entry after a loss is told of the loss.
func (c *Client) heldBy(o *owner, key driver.Key) *Lease {
	if !o.has(&c.core, key) { // as nearly always; it costs less than Client.mu
		return nil
	}
	c.lock()
	defer c.unlock()
	if l := c.liveHold(o, key); l != nil {
		return l
	}
	return o.first(&c.core, key, func(*Lease) bool { return true })
}

// liveHold returns the oldest live hold of o on key, or nil. It notices holds that have just ended, and tries again
// then. The caller holds Client.mu.
func (c *core) liveHold(o *owner, key driver.Key) *Lease {
	for {
		l := o.first(c, key, func(l *Lease) bool { return l.ended() == nil })
		if l == nil {
			return nil
		}
		if l.check(c.now()); l.ended() == nil {
			return l
		}
	}
}

// liveGrant returns the grant on which o's live hold of key rests, or nil. It returns nil for named owners, because the
// engine counts their holds one by one. The caller holds Client.mu.
func (c *core) liveGrant(o *owner, key driver.Key) *grant {
	if o.named {
		return nil
	}
	if l := c.liveHold(o, key); l != nil {
		return l.g
	}
	return nil
}
