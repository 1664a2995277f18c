package remote

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
)

// What the two processes say to each other, and how errors keep their identity on the way.

// message is what the two processes send each other, as gob, which leaves out the functions of a Request by itself.
type message struct {
	Call int    // the number of the call to which this belongs
	Op   string // what is asked, or what this says about the call

	Request *driver.Request
	All     []*driver.Request // of an AcquireAll
	Release *driver.Release
	Beside  string // of a Convert; of an Adopt the ID of the hold
	Batch   []driver.Renewal
	Key     driver.Key
	Token   uint64
	Prefix  string
	Limit   int // of a Resize
	Latch   *driver.LatchCall
	Signal  *driver.Signal

	Traits   driver.Traits
	Optional optional.Set
	Grant    driver.Grant
	Grants   []driver.Grant
	Err      *failure // nil if none
	Index    int      // of the hold of a batch, or the request of an AcquireAll, that this is about
	Locks    []driver.LockInfo
	Count    int64
	Set      bool
	Findings []driver.Finding
	Reason   driver.LostReason
}

// What is asked for is named by the method. These are sent beside.
const (
	// Requests are named by the method. These are sent besides.
	opHello   = "hello"   // the child's first message
	opCancel  = "cancel"  // the context of the call has ended
	opAnswer  = "answer"  // the call has returned
	opWaiting = "waiting" // Request.Waiting was called
	opLost    = "lost"    // Request.Lost was called
	opWanted  = "wanted"  // Request.Wanted was called
	opRenewed = "renewed" // done was called, for one hold of a batch
	opHint    = "hint"    // a watch has told of a change, or a condition's wait that it has begun
)

// known are the errors that keep their identity on the way.
var known = []error{
	driver.ErrHeld, driver.ErrLost, driver.ErrReleased, driver.ErrUnavailable, driver.ErrUnsupported, driver.ErrClosed,
	driver.ErrDeadlock, driver.ErrNested, driver.ErrConflict, driver.ErrNotHeld, context.Canceled,
	context.DeadlineExceeded, driver.ErrRefused,
}

// failure is an error on its way.
type failure struct {
	Text    string
	Matches []int // indexes of known
	Held    *driver.HeldError
	Lost    *driver.LostError
	Refusal *refusal // nil if none
	NotSent bool
}

// refusal is what matters of a driver.RefusedError beside its text.
type refusal struct {
	Hint string
	Open bool
}

// pack makes err one that can be sent: its text, and what it matches.
func pack(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error(), NotSent: driver.IsNotSent(err)}
	if said := driver.Refusal(err); said != nil {
		f.Refusal = &refusal{said.Hint, said.Open}
	}
	for i, k := range known {
		if errors.Is(err, k) {
			f.Matches = append(f.Matches, i)
		}
	}
	// The causes of these are errors of any type, which gob cannot send. Matches has what matters of them.
	if held := (*driver.HeldError)(nil); errors.As(err, &held) {
		sent := *held
		sent.Cause = nil
		f.Held = &sent
	}
	if lost := (*driver.LostError)(nil); errors.As(err, &lost) {
		sent := *lost
		sent.Cause = nil
		f.Lost = &sent
	}
	return f
}

// endedBy makes an answer say how the caller's context ended: the child knows only that it did.
func (m *message) endedBy(cause error) {
	if m.Err == nil || !errors.Is(cause, context.DeadlineExceeded) {
		return
	}
	for i, k := range m.Err.Matches {
		if errors.Is(known[k], context.Canceled) {
			m.Err.Matches[i] = slices.Index(known, context.DeadlineExceeded)
		}
	}
}

// received is an error that has arrived: it matches what the original did.
type received struct {
	text    string
	matches []error
}

func (e *received) Error() string   { return e.text }
func (e *received) Unwrap() []error { return e.matches }

// unpack returns an error that matches what the original did.
func (f *failure) unpack() error {
	if f == nil {
		return nil
	}
	e := &received{text: f.Text}
	for _, i := range f.Matches {
		if i < 0 || i >= len(known) {
			continue
		}
		switch { // ErrUnavailable by itself would say that the outcome is unknown
		case errors.Is(known[i], driver.ErrUnavailable) && f.Refusal != nil:
			e.matches = append(e.matches,
				&driver.RefusedError{Err: errors.New(f.Text), Hint: f.Refusal.Hint, Open: f.Refusal.Open})
		case errors.Is(known[i], driver.ErrUnavailable) && f.NotSent:
			e.matches = append(e.matches, &driver.UnavailableError{Err: errors.New(f.Text), NotSent: true})
		default:
			e.matches = append(e.matches, known[i])
		}
		// The cause decides whether a refusal is definite.
		if f.Held != nil && (errors.Is(known[i], context.Canceled) || errors.Is(known[i], context.DeadlineExceeded)) {
			f.Held.Cause = known[i]
		}
	}
	if f.Held != nil {
		e.matches = append(e.matches, f.Held)
	}
	if f.Lost != nil {
		e.matches = append(e.matches, f.Lost)
	}
	return e
}
