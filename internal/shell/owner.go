package shell

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// heldLater returns a live hold of o on a mutex that comes after m in the order of taking, or nil. No Multi waits for a
// lock of another kind, so those do not count.
func HeldLater(o *core.Owner, m *core.Lock) *core.Hold {
	o.Mu.Lock()
	last := o.Holds.Last()
	o.Mu.Unlock()
	if last == nil || last.Lock.Key().Kind != driver.KindMutex || core.Compare(last.Lock, m) <= 0 {
		return nil
	}
	if EndOf(last) == nil {
		return last
	}
	for _, l := range o.AllHeldLater(m) { // the last was lost, and has not been unlocked yet
		if EndOf(l) == nil {
			return l
		}
	}
	return nil
}

// together calls f for each of the leases, side by side if there are several, and returns their errors in order. The
// first runs in the caller's goroutine.
func Together(leases []*core.Hold, f func(*core.Hold) error) error {
	errs := make([]error, len(leases))
	var all sync.WaitGroup
	for i, l := range leases[1:] {
		all.Go(func() { errs[i+1] = f(l) })
	}
	errs[0] = f(leases[0])
	all.Wait()
	return errors.Join(errs...)
}

// ownerFrom returns the owner that ctx carries, or nil.
func OwnerFrom(ctx context.Context) *core.Owner {
	PanicOn(CheckContext(ctx))
	o, _ := ctx.Value(core.OwnerKey{}).(*core.Owner)
	return o
}

// heldBy returns a hold of o on key that has not been unlocked yet: a live one, or else a lost one. A lost hold stays
// with its owner until it is unlocked, so that re-entry after a loss is told of the loss.
func (c *Client) heldBy(o *core.Owner, key driver.Key) *core.Hold {
	if !o.Has(&c.Machine, key) { // as nearly always; it costs less than Machine.Mu
		return nil
	}
	c.Lock()
	defer c.Unlock()
	if l := c.Machine.LiveHold(o, key); l != nil {
		return l
	}
	return o.First(&c.Machine, key, func(*core.Hold) bool { return true })
}
