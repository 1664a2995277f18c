package grants

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Next is what becomes of a grant that nobody holds any more.
type Next uint8

// What may become of it.
const (
	GiveBack   Next = iota // it is released; where the engine has leases it keeps the lock closed for the cooldown
	RunOut                 // it is left to run out
	KeepClosed             // this process keeps it until its cooldown is over
	PassOn                 // to the next waiter of this process
	RenewFirst             // it is renewed and then judged again: the next waiter wants more trust than is left
	Requeue                // to the engine, in one step with the request of its line
	Retain                 // this client keeps it for its own next Lock
)

// Around is what counts beside the grant itself.
type Around struct {
	Cooldown   time.Duration // how much longer nobody may get the lock
	Waiting    bool          // somebody of this process stands in its line
	CanRequeue bool          // the engine can, and the line has no request under way
	CanRetain  bool          // the client is open, and the last hold asked for retention
	Renewed    bool          // it was to be renewed for a pass, and that is over
	Doubt      bool          // the renewal was not confirmed
}

// Next decides in this order: what must not be given back, what must stay closed, who waits in this process, the client
// itself, the engine. It is called once for each grant that loses its last hold.
func (g *Grant) Next(e *Env, t *Terms, now trust.Instant, a Around) Next {
	switch {
	case g.Phase == Abandoned:
		return RunOut
	case a.Cooldown > 0 && e.Lifetime != driver.Leases:
		return KeepClosed
	case a.Cooldown > 0: // it is for the waiters of this process too, and for its next Lock
		return GiveBack
	case a.Waiting && !g.Alone:
		return g.nextInLine(e, t, now, a)
	case a.CanRetain && g.mayRetain(e, t, now):
		return Retain
	}
	return GiveBack
}

// nextInLine is Next of a grant for which somebody waits.
func (g *Grant) nextInLine(e *Env, t *Terms, now trust.Instant, a Around) Next {
	switch {
	case !a.Doubt && g.mayPass(e, t, now) && g.trustedEnough(e, t, now):
		return PassOn
	// A renewal brings enough trust, unless there is too much, and unless clients outside have waited long enough.
	case !a.Renewed && g.mayPass(e, t, now) && e.Lifetime == driver.Leases && g.Remaining(e, now) < t.Lease*2/3:
		return RenewFirst
	case a.CanRequeue:
		return Requeue
	}
	return GiveBack
}

// mayPass reports whether g may go on to another owner of this process, as far as the clients outside are concerned.
// The block must have a token left, and they must not have waited for longer than the options allow.
func (g *Grant) mayPass(e *Env, t *Terms, now trust.Instant) bool {
	// A failed renewal leaves the grant in doubt, and whoever gets it next could not be told how long it lasts.
	if g.Alone || t.NoRenew || g.Pass+1 >= g.Tokens || g.Failed {
		return false
	}
	if g.Recallable && !g.Recalled {
		return true // the engine would have told if anybody outside waited
	}
	return int(g.Pass) < e.LocalHandoffs && now.Since(g.Since) < e.LocalHandoffTime
}

// trustedEnough reports whether the trust that is left is worth passing on. With too little of it the receiver could
// lose the hold before a renewal is answered.
func (g *Grant) trustedEnough(e *Env, t *Terms, now trust.Instant) bool {
	switch e.Lifetime {
	case driver.Process:
		return true
	// A sign of life is sent each third of the timeout, so a third may be missing, and one more while its reply is
	// under way.
	case driver.Sessions:
		return g.Remaining(e, now) >= g.Window.Lease/3
	// Two thirds of the receiver's lease at least, and no more than all of it. If the receiver died, others would
	// otherwise wait for longer than it asked for.
	default:
		left := g.Remaining(e, now)
		return left >= t.Lease*2/3 && left <= t.Lease
	}
}

// RetainLease is how long a retained grant lasts in the engine after its last renewal, and never longer than its lock's
// own lease. It is renewed after half of that, so one missed renewal ends only the retention.
const RetainLease = 2 * time.Second

// RetainLease returns the lease of a grant with these terms while it is retained.
func (t *Terms) RetainLease() time.Duration { return min(RetainLease, t.Lease) }

// mayRetain reports whether g may be kept without an owner. It must not if another client may wait for it, its state is
// in doubt, its tokens are used up, or too little trust is left for a take-over.
func (g *Grant) mayRetain(e *Env, t *Terms, now trust.Instant) bool {
	return g.Recallable && !g.Recalled && !g.Alone && !g.Failed && g.Phase == Live && g.Pass+1 < g.Tokens &&
		g.Remaining(e, now) >= t.RetainLease()/2
}

// MayTakeOver reports whether g, which is retained, still has enough trust for a next owner.
func (g *Grant) MayTakeOver(e *Env, t *Terms, now trust.Instant) bool {
	return g.Remaining(e, now) >= t.RetainLease()/4
}
