package driver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The classes of errors. refused.go has the fourth, and the functions that tell what an error says about the outcome.

// What can go wrong, as sentinels for errors.Is. Held, lost and unavailable are three different things: somebody else
// has it, you had it, nobody knows. ErrRefused is the fourth: the engine said no.
var (
	ErrHeld        = errors.New("held by another owner")             // another owner holds the lock; see HeldError
	ErrLost        = errors.New("lost")                              // lost, and another may be inside; see LostError
	ErrReleased    = errors.New("already released")                  // the hold was released before
	ErrUnavailable = errors.New("engine unavailable, state unknown") // no answer, or not asked; see UnavailableError
	ErrUnsupported = errors.New("not supported by this engine")      // the engine, or this version, cannot do it
	ErrClosed      = errors.New("client closed")                     // the client or its driver is closed
	ErrDeadlock    = errors.New("deadlock")                          // the wait would never end
	ErrNested      = errors.New("owner has further holds")           // so this one cannot be given up alone
	ErrConflict    = errors.New("in use with other parameters")      // or the hold is in the wrong state for the call
	ErrNotHeld     = errors.New("not held")                          // nobody holds the lock
)

// HeldError says that another owner holds the lock, and what is known of it. It matches ErrHeld. When its context ended
// a wait, it also unwraps to the context's error. Fields that the engine does not tell are zero.
type HeldError struct {
	Kind   Kind      // of the lock
	Name   string    // of the lock
	Owner  string    // owner id of a holder, if the engine tells
	Client string    // the client's name as operators see it
	Token  uint64    // 0 if unknown
	Since  time.Time // zero if unknown
	Until  time.Time // end of the lease as the engine sees it; zero if unknown
	Cause  error     // the context's error, or nil

	// Waited is how long a wait lasted that the lock's own bound ended (LockOptions.Wait), and no context. Else it is
	// 0.
	Waited time.Duration

	// Retains says that the holder's client keeps the lock for a while after its owners have ended their holds; see
	// [Request].Retains. That client has been told that another wants the lock, and gives it back if nobody holds it.
	Retains bool
}

// Error names the holder as far as it is known.
func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q is held", e.Kind, e.Name)
	if e.Client != "" {
		fmt.Fprintf(&b, " by %s", inOneLine(e.Client))
	}
	if e.Owner != "" {
		fmt.Fprintf(&b, " (owner %s)", inOneLine(e.Owner))
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.Format(time.RFC3339))
	}
	if e.Token != 0 {
		fmt.Fprintf(&b, ", token %d", e.Token)
	}
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, ", lease until %s", e.Until.Format(time.RFC3339))
	}
	if e.Waited != 0 {
		fmt.Fprintf(&b, ": waited %v", e.Waited.Round(time.Millisecond))
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// inOneLine quotes a text that another process has chosen if it would break a line, or hide in it.
func inOneLine(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// Is matches ErrHeld.
func (e *HeldError) Is(t error) bool { return t == ErrHeld }

// Unwrap returns Cause.
func (e *HeldError) Unwrap() error { return e.Cause }

// LostReason says how a hold was lost. Metrics use it as a label, so drivers take the one of these that fits best and
// have none of their own.
type LostReason string

// The ways to lose a hold.
const (
	LostUnconfirmed LostReason = "unconfirmed" // the trust window ended without a confirmed renewal
	LostExpired     LostReason = "expired"     // the engine said that the lease had ended
	LostTaken       LostReason = "taken"       // another owner has it
	LostBroken      LostReason = "broken"      // Break
	LostSession     LostReason = "session"     // the session or connection ended
	LostSuspended   LostReason = "suspended"   // this machine stood still longer than the lease
	LostAdopted     LostReason = "adopted"     // another client has adopted it, by a Handle
)

// sentence returns the reason in words, for Error. An unknown reason is shown as it is.
func (r LostReason) sentence() string {
	switch r {
	case LostUnconfirmed:
		return "no renewal was confirmed in time"
	case LostExpired:
		return "its lease had ended"
	case LostTaken:
		return "another owner has it"
	case LostBroken:
		return "it was broken by an operator"
	case LostSession:
		return "its session ended"
	case LostSuspended:
		return "this machine stood still for too long"
	case LostAdopted:
		return "another client has adopted it"
	}
	return string(r)
}

// LostError says that a hold ended although its owner had not released it: another owner may be inside by now. It
// matches ErrLost.
type LostError struct {
	Kind   Kind       // of the lock
	Name   string     // of the lock
	Token  uint64     // of the hold; 0 if unknown
	Reason LostReason // how it was lost
	Cause  error      // what the engine said, if it said more; or nil
}

// Error names the lock, the token and the reason.
func (e *LostError) Error() string {
	s := fmt.Sprintf("%s %q was lost: %s", e.Kind, e.Name, e.Reason.sentence())
	if e.Token != 0 {
		s += fmt.Sprintf(" (token %d)", e.Token)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Is matches ErrLost.
func (e *LostError) Is(t error) bool { return t == ErrLost }

// Unwrap returns Cause.
func (e *LostError) Unwrap() error { return e.Cause }

// UnavailableError says that the engine did not do what was asked, as far as is known. Either it did not answer, and
// whether the operation happened is unknown; or, with NotSent, it could not be asked, and nothing has happened. It
// matches ErrUnavailable and unwraps to what went wrong. An engine that says no is a RefusedError.
type UnavailableError struct {
	Op   string // what was asked for: "acquire", "release" and so on
	Name string // of the lock; empty if the operation is about none
	Err  error  // what went wrong

	// NotSent says that the engine could not be asked: nothing was sent, or what was sent was turned away unread. So
	// nothing has happened. The portable layer undoes it all the same.
	NotSent bool
}

// Error names the operation, what is known of its outcome, and what went wrong.
func (e *UnavailableError) Error() string {
	switch {
	case e.NotSent && e.Op == "unlock": // the hold has ended all the same, in the process that had it
		return about(e.Op, e.Name, "the engine cannot be reached, so it has not heard of the release", e.Err)
	case e.NotSent:
		return about(e.Op, e.Name, "the engine cannot be reached, so nothing was done", e.Err)
	}
	return about(e.Op, e.Name, "the engine did not answer, so the outcome is unknown", e.Err)
}

// Is matches ErrUnavailable.
func (e *UnavailableError) Is(t error) bool { return t == ErrUnavailable }

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsDefinite reports whether an error of Acquire says for certain that nothing was taken and nothing is queued; see
// [Driver].
func IsDefinite(err error) bool {
	if refused := Refusal(err); refused != nil {
		return !refused.Open
	}
	if errors.Is(err, ErrUnavailable) {
		return false
	}
	var held *HeldError
	if errors.As(err, &held) {
		return held.Cause == nil
	}
	for _, definite := range []error{ErrHeld, ErrUnsupported, ErrConflict, ErrDeadlock, ErrNested, ErrClosed} {
		if errors.Is(err, definite) {
			return true
		}
	}
	return false
}
