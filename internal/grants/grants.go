// Package grants is what the engine has given, as values: until when a grant counts, when it must be renewed, and what
// becomes of it when nobody holds it any more. Nothing here reads a clock, blocks, starts a goroutine or calls an
// engine: every judgement is made at an instant that the caller gives, and the work that follows is returned ([Next]).
package grants

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Env is what all grants of one client have in common.
type Env struct {
	Lifetime         driver.Lifetime // what ends a hold
	LocalHandoffs    int             // how often a grant passes on inside the process while others may wait
	LocalHandoffTime time.Duration   // and until how long after the grant
	Clock            trust.Clock
	Suspensions      trust.Suspensions
}

// Terms are what a lock is asked for with.
type Terms struct {
	Lease, Renewal, MaxHold time.Duration
	MinHold, LockDelay      time.Duration
	Retain                  time.Duration
	NoRenew                 bool
}

// Phase is how far a grant has come. It only ever moves forward.
type Phase uint8

// The phases.
const (
	Requested Phase = iota // no answer has been processed yet
	Revoked                // the engine took it back before its answer was processed
	Live                   // it counts
	Abandoned              // it counts, but its last hold leaves it to run out
	Gone                   // given back or lost; nothing about it changes any more
)

// Grant is one hold of the engine as this process sees it, from the request for it until it is given back or lost. The
// re-entries of an anonymous owner share one, and inside the process it may pass from owner to owner. A value: a copy
// is a grant of its own.
type Grant struct {
	ID     string // of the request: release and renewal name the hold in the engine by it
	Token  uint64 // the first of the block that the engine granted
	Tokens int32  // the length of the block
	Pass   int32  // how often it has passed on: the token in use is Token+Pass

	Since  trust.Instant // when it was taken in; passes count their time from here
	Asked  time.Duration // the longest lease that was asked for: the engine may hold that long, whatever it answered
	Window trust.Window

	Own *EngineSide // nil on most engines

	Renewed   trust.Instant // when the last confirmed renewal was sent, or the acquisition
	NotBefore trust.Instant // no renewal is sent before: the pause after an attempt
	Shortened trust.Instant // when the last renewal was sent that may shorten the lease

	Phase   Phase
	Alone   bool // it never passes on: a named owner's, or one after which the engine has granted another
	Failed  bool // the last renewal failed, so it neither passes on nor is retained
	Between bool // nobody holds it: it is being renewed for a pass, kept for a cooldown, or retained

	Recallable bool // the engine tells this client when another wants the lock, and the client may retain it
	Recalled   bool // others may wait, so it must not be retained
	Wanted     bool // the engine has said that another waits
	RecallTold bool // the Observer has been told so
	Shown      bool // an engine with sessions shows it as retained, or may do so

	Mislabelled bool // the engine shows the label of another call
}

// EngineSide is what only some engines add to a grant. It stands apart because most engines need no more than the
// request's id.
type EngineSide struct {
	Nonce   string
	Session driver.Session // what keeps the hold alive; nil on engines without sessions
}

// MostTokens bounds the length of a block.
const MostTokens = 1_000_001

// Take makes g live by the engine's answer a, at the instant now.
func (g *Grant) Take(e *Env, a driver.Grant, now trust.Instant) {
	g.Phase = Live
	g.Token, g.Tokens = a.Token, int32(min(max(a.Tokens, 1), MostTokens))
	// Most engines give the id as the nonce. Then nothing is allocated, and the reply's own string is not kept: it
	// would keep the whole reply in memory.
	if a.Nonce != g.ID || a.Session != nil {
		g.Own = &EngineSide{a.Nonce, a.Session}
	}
	g.Since, g.Window.Lease = now, a.Lease
	if e.Lifetime == driver.Leases {
		g.Window.Sent = e.Clock.At(a.Sent)
	}
	g.Renewed = g.Window.Sent
}

// TooLate reports whether the window of answer is over before anybody got the hold. On engines without leases the
// driver reports a hold that has ended.
func TooLate(e *Env, answer driver.Grant, now trust.Instant) bool {
	w := trust.Window{Sent: e.Clock.At(answer.Sent), Lease: answer.Lease}
	return e.Lifetime == driver.Leases && now >= w.EndWith(&e.Suspensions)
}

// Nonce returns the nonce that the engine has given.
func (g *Grant) Nonce() string {
	if g.Own == nil {
		return g.ID
	}
	return g.Own.Nonce
}

// NonceOf returns the nonce of one pass. It differs from that of every other acquisition, so that a fence can tell two
// holders apart even if their tokens are equal.
func (g *Grant) NonceOf(pass int32) string {
	if pass == 0 {
		return g.Nonce()
	}
	return g.Nonce() + "." + strconv.Itoa(int(pass))
}

// Session returns what keeps g alive on an engine with sessions, and nil elsewhere.
func (g *Grant) Session() driver.Session {
	if g.Own == nil {
		return nil
	}
	return g.Own.Session
}

// TakeToken takes over the token and nonce of a later grant to the same owner, and never those of an earlier one.
func (g *Grant) TakeToken(from *Grant) {
	if g.Token < from.Token {
		g.Token, g.Own = from.Token, &EngineSide{from.Nonce(), g.Session()}
	}
}

// Deadline returns the end of the window of g, or Never on engines whose holds last as long as the process. On engines
// with sessions the window is counted from the session's last confirmed sign of life.
func (g *Grant) Deadline(e *Env) trust.Instant {
	switch e.Lifetime {
	case driver.Process:
		return trust.Never
	case driver.Sessions:
		from := e.Clock.At(g.Session().Confirmed())
		return trust.Window{Sent: from, Lease: g.Window.Lease}.EndWith(&e.Suspensions)
	default:
		return g.Window.EndWith(&e.Suspensions)
	}
}

// Remaining returns how much of the window is left; it is negative after its end.
func (g *Grant) Remaining(e *Env, now trust.Instant) time.Duration { return g.Deadline(e).Since(now) }

// FixedEnd returns when a hold that is not renewed ends. That is after its lease, but no later than the window, so that
// it never outlives the engine's own lease. A grant that came by a push is short. So the window is computed from the
// lease that was asked for, which the claim brings.
func (g *Grant) FixedEnd(e *Env, now trust.Instant, lease time.Duration) trust.Instant {
	if e.Lifetime != driver.Leases {
		return now.Plus(lease) // a session or process goes on by itself
	}
	w := trust.Window{Sent: g.Window.Sent, Lease: max(g.Window.Lease, g.Asked)}
	return min(now.Plus(lease), w.EndWith(&e.Suspensions))
}

// Shorten prepares g for a renewal that may shorten the engine's lease. The trust is cut before the request is sent: it
// may take effect although it is never answered. Answers to earlier renewals no longer count.
func (g *Grant) Shorten(now trust.Instant, lease time.Duration) {
	g.Shortened = now
	g.Window = g.Window.Shorter(trust.Window{Sent: now, Lease: lease})
}

// Confirm records that the engine renewed g for lease, by a request sent at sent. It proves nothing any more if a later
// renewal may have shortened the lease. A confirmation after the end of the window is worth nothing either: the caller
// has checked that g is not lost.
func (g *Grant) Confirm(sent trust.Instant, lease time.Duration) {
	if sent < g.Shortened {
		return
	}
	g.Renewed = max(g.Renewed, sent)
	g.Window = g.Window.Longer(trust.Window{Sent: sent, Lease: lease})
}

// LossReason says why the window of g ended at end, as far as this process knows. renewing says that renewals were
// sent.
func (g *Grant) LossReason(e *Env, now, end trust.Instant, renewing bool) driver.LostReason {
	from := g.Window.Sent
	if g.Session() != nil {
		from = e.Clock.At(g.Session().Confirmed())
	}
	switch {
	case now < end.Plus(e.Suspensions.Since(from)):
		return driver.LostSuspended // without the suspension some time would be left
	// A fixed lease has run out, as its owner asked.
	case g.Session() == nil && !renewing:
		return driver.LostExpired
	default:
		return driver.LostUnconfirmed
	}
}
