package interlock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Who holds: an owner, with all that it holds and how many of its goroutines wait. It travels in the context
// (internal/shell/context.go). internal/core/owner.go has what it holds, and the table of named owners.

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
	shell.PanicOn(shell.CheckContext(ctx))
	return context.WithValue(ctx, core.OwnerKey{}, core.Names.Owner(name))
}

// OwnerFrom returns the name that WithOwner put into ctx or into the context that a lease was taken with. It reports
// false for anonymous owners: they cannot travel to other processes.
func OwnerFrom(ctx context.Context) (string, bool) {
	o := shell.OwnerFrom(ctx)
	if o == nil || !o.Named {
		return "", false
	}
	return o.ID, true
}

// AssertHeld panics unless ctx carries the owner of a live hold of the mutex of that name, on any client of this
// process. It is for functions that rely on their caller to hold a lock. It looks at the clock and asks no engine, so
// it does not prove that the engine still counts the hold.
func AssertHeld(ctx context.Context, name string) {
	if o := shell.OwnerFrom(ctx); o != nil {
		for _, l := range o.On(driver.Key{Kind: driver.KindMutex, Name: name}) {
			if shell.EndOf(l) == nil {
				return
			}
		}
	}
	panic(fmt.Sprintf("interlock: the mutex %q is not held by the owner in this context", name))
}
