package core

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// AtOnce is how many locks, waits or ends are processed before other calls of the client get core.mu: about a tenth of
// a millisecond's work.
const AtOnce = 64

// Machine is the state of a client. It changes under core.mu, at one instant for each event, and emits the work that
// follows from that: it calls no engine and no user, starts no goroutine and reads a clock in now alone.
type Machine struct {
	Shell    Shell  // the *Client around it; see client
	Store    string // Options.Store
	Hears    bool   // the Observer has Acquired
	Renews   bool   // the engine has to be asked for renewals
	Requeues bool   // the engine can requeue
	Converts bool   // the engine can convert
	Traits   driver.Traits
	Defaults Terms // of a lock without options of its own
	Env      grants.Env
	Recalls  bool // the engine tells a holder when another client wants the lock
	Watching bool // holds have a trust window, so suspensions of the machine matter

	Background sync.WaitGroup // every goroutine of the client

	Mu      sync.Mutex        // guards what follows, and every line, hold and request; see internal/shell/effects.go
	Effects []Effect          // what is done when mu has been given up; see emit
	Instant trust.Instant     // of what happens under this mu; 0 until now is asked for
	Closed  bool              // Close has begun: nothing new may start
	Lines   map[LineKey]*Line // the lines of waiters; empty lines are removed
	// by EngineHold.listName, the first of a list each: everything that the engine gave, until it is released or lost
	EngineHolds map[string]*EngineHold
	LinesOfOne  map[*Waiter]struct{} // waiters that stand in no line; see AskAlone
	// grants that others must not get yet, held or not; nil until there is one
	Cooldowns map[*EngineHold]*cooldown
	Failures  map[*EngineHold]error // how the last renewal failed, of those of which it did; nil until one did
	// locks left to run out whose release is still to come; nil until there is one
	LeftToExpire map[*LateRelease]struct{}
	Scheduler    scheduler
	Retention    retention
}

// Shell is what the core asks of the client around it, under core.mu. None of it blocks.
type Shell interface {
	NewRequest(w *Waiter, try bool) *Request
	NewID() string
	SuspectDeadlock(o *Owner)
	Arm(at trust.Instant)
	// What the Observer and the log are told once core.mu has been given up.
	Lost(l *Hold, lost *driver.LostError)
	Adopted(l *Hold)
	Retained(g *EngineHold) News
	RenewalConfirmed(g *EngineHold, left, lease time.Duration)
	RenewalFailed(g *EngineHold, left time.Duration, again bool, err error)
	LeftPending(g *EngineHold)
}

// News is told when a retention is over.
type News interface{ End() }

// GivenUp is a wait that gives a hold up, while the engine is asked.
type GivenUp interface{ EndedMeanwhile(lost *driver.LostError) }

// Now returns the instant at which everything under this Machine.Mu happens, and notices if the machine was suspended.
// The caller holds Machine.Mu.
func (c *Machine) Now() trust.Instant {
	if c.Instant == 0 {
		c.Instant = c.Env.Clock.Now()
		if c.Watching {
			c.Env.Suspensions.Look(c.Instant)
		}
	}
	return c.Instant
}

// verb says what an effect does.
type verb uint8

const (
	CancelContexts  verb = iota // contexts, with cause; it runs the user's functions (context.AfterFunc)
	SendRelease                 // give, of m, again and again until its outcome is known
	SendRequest                 // fetch
	SendRenewals                // batch
	SendLastRenewal             // batch, of one that is left to run out, again and again for that time
	RenewForHandoff             // grant
	ReleaseAfter                // late, when its time has come
	FinishRelease               // left, which giveUp has counted
	CallUser                    // the Observer or the log, which may be slow although they must not be
)

// Effect is one thing to do. What runs in the background is counted when it is emitted, so that Close waits for it.
type Effect struct {
	Verb     verb
	Lock     *Lock
	Give     *driver.Release
	Request  *Request
	Engine   *EngineHold
	Late     *LateRelease
	After    time.Duration
	Batch    []PendingRenewal
	Contexts []*Ending
	Cause    error
	Left     PendingRelease
	Call     func()
	Done     chan struct{} // of SendRelease: closed when its outcome is known; nil if nobody waits for that
}

// Emit has e done as soon as Machine.Mu has been given up. The caller holds Machine.Mu.
func (c *Machine) Emit(e Effect) {
	switch e.Verb {
	case CancelContexts, CallUser:
	default:
		c.Background.Add(1)
	}
	c.Effects = append(c.Effects, e)
}

// AfterUnlock has f, which calls the user's code, called. The caller holds Machine.Mu.
func (c *Machine) AfterUnlock(f func()) { c.Emit(Effect{Verb: CallUser, Call: f}) }

// ReleaseInBackground has r, of m, released in the background. The caller holds Machine.Mu.
func (c *Machine) ReleaseInBackground(m *Lock, r *driver.Release) {
	c.Emit(Effect{Verb: SendRelease, Lock: m, Give: r})
}

// HasLeases reports whether each hold has a lease of its own, which renewals lengthen.
func (c *Machine) HasLeases() bool { return c.Traits.Lifetime == driver.Leases }

// HasSessions reports whether holds last as long as a session.
func (c *Machine) HasSessions() bool { return c.Traits.Lifetime == driver.Sessions }

// ErrAdopted is ErrAdopted of the package above.
var ErrAdopted error = adoptedError{}

type adoptedError struct{}

// Error says what has happened.
func (adoptedError) Error() string { return "another client has adopted it" }

// Is matches ErrReleased.
func (adoptedError) Is(t error) bool { return t == driver.ErrReleased }

// Unsupported returns the error for what the engine lacks, with its reason.
func Unsupported(t driver.Traits, reason string) error {
	return &unsupportedError{engine: t.Engine, reason: reason}
}

type unsupportedError struct{ engine, reason string }

// Error gives the engine and its reason.
func (e *unsupportedError) Error() string {
	return driver.ErrUnsupported.Error() + " (" + e.engine + ": " + e.reason + ")"
}

// Is matches driver.ErrUnsupported.
func (e *unsupportedError) Is(t error) bool { return t == driver.ErrUnsupported }
