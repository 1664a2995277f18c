// When a call is tried again, and after which pause: the retry machine of all transports (docs/rationale.md, Rooms of
// redislock). judge.go has said what the error means.

package conn

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

const (
	// patience is how long a call is tried again that a server refuses for a reason that passes: it loads its data, a
	// failover is under way, or a slot is moving to another node.
	patience = 2 * time.Second

	// mostRedirects is how many MOVED and ASK a call follows at least, however long that takes. Nodes that point at
	// each other agree within moments.
	mostRedirects = 16

	// fewRedirects is how many it follows without a pause.
	fewRedirects = 2

	// mostEvals is how often a call may be told that its script is not known. Once is usual; in a pipeline a SCRIPT
	// FLUSH may come in between.
	mostEvals = 3
)

// Try is what a call has been told so far by servers that did not run it, and how it must be sent next. The zero value
// is that of a new call. A transport judges the error of a try ([Library.Judge]), uses for itself what the judgement
// says about its servers, and asks Next whether to go on. A Try belongs to one call and needs no lock.
type Try struct {
	Asking     string // the address of the node to ask this time only, after ASK
	Redirected bool   // for transports whose library follows redirects: it must do so from now on
	Alone      bool   // the bundle that the call was in was not run
	Evals      int    // how often a server did not know the script; if positive, the source is sent

	last      error     // of the latest try
	redirects int       // how many MOVED and ASK there were
	replaced  int       // how often a server was not the primary any more
	since     time.Time // when Impatient was asked first
}

// Next takes the error of one try, and the judgement of it. It returns a final error if that was the last try, and
// otherwise whether to pause before the next. The final error is a [RefusedError] unless it is unknown whether the call
// has run. failsOver says that another server may soon take the place of one that cannot be reached.
func (t *Try) Next(j Judgement, err error, failsOver bool) (wait bool, final error) {
	refused := t.Told(err)
	t.Asking, t.last = "", err // ASK is valid for one try
	switch j.Verdict {
	case Unknown:
		return false, err
	case Unsent:
		// At once: only this connection broke, and the next try makes a new one.
		return false, nil
	case ByItself:
		t.Alone = true
		return false, nil
	case NoScript:
		t.Evals++
		return false, refusedIf(t.Evals > mostEvals, err)
	case Moved, Asked:
		if j.Verdict == Asked {
			t.Asking = j.Addr
		}
		t.redirects++
		// Asked before the comparison, so that the time counts from the first redirect.
		late := t.Impatient()
		return t.redirects > fewRedirects, refusedIf(late && t.redirects > mostRedirects, err)
	case Elsewhere: // the new primary is found at once, or soon
		t.replaced++
		return t.replaced > 1, refusedIf(t.Impatient(), err)
	case Unreached:
		return true, refusedIf(t.Impatient() || !failsOver, err)
	case Later:
		return true, refusedIf(t.Impatient(), err)
	case Refused:
	}
	return false, refusedIf(true, refused)
}

// NextSubscribe is Next for a subscription. Subscribing twice does no harm, so after a broken connection it is tried
// again.
func (t *Try) NextSubscribe(j Judgement, err error, failsOver bool) (wait bool, final error) {
	wait, final = t.Next(j, err, failsOver)
	if final != nil && j.Verdict == Unknown && !j.Answered && !t.Impatient() {
		return true, nil
	}
	return wait, final
}

// Impatient reports whether the call has been tried again for long enough: 2 seconds since this was first asked.
func (t *Try) Impatient() bool {
	if t.since.IsZero() {
		t.since = time.Now()
	}
	return time.Since(t.since) > patience
}

// AsRefused returns the error of a call that has not run as a [RefusedError].
func AsRefused(err error) error {
	var refusal *RefusedError
	if errors.As(err, &refusal) {
		return err
	}
	return &RefusedError{err}
}

// refusedIf returns err as a refusal if that is the end, and else nil.
func refusedIf(end bool, err error) error {
	if !end {
		return nil
	}
	return AsRefused(err)
}

// Told returns err, of a try that was not sent. If that is because a context ended, and servers have turned the call
// away before, it tells the last of their answers: see [GaveUp].
func (t *Try) Told(err error) error {
	var refusal *RefusedError
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if t.last == nil || !ended || !errors.As(err, &refusal) || errors.As(err, new(*lastAnswerError)) {
		return err
	}
	return &RefusedError{&lastAnswerError{err, t.last}}
}

// Pause is the function [Pause], and says what the servers have answered last if ctx ended.
func (t *Try) Pause(ctx context.Context) error {
	if err := Pause(ctx); err != nil {
		return GaveUp(ctx, t.last)
	}
	return nil
}

// Pause waits before a call is tried again: 20 ms, give or take a half, so that calls that were refused together do not
// come back together. It returns a [RefusedError] if ctx ended.
func Pause(ctx context.Context) error {
	if !enginekit.Pause(ctx, 10*time.Millisecond+rand.N(20*time.Millisecond)) {
		return &RefusedError{ctx.Err()}
	}
	return nil
}

// GaveUp returns the [RefusedError] of a call that has not run because ctx ended while it was tried again. last, if not
// nil, is why it had to be: without it a caller with little time would never learn that the server is a replica, busy,
// or full of connections. The error matches both.
func GaveUp(ctx context.Context, last error) error {
	end := ctx.Err()
	if end == nil { // a deadline that has passed is seen before its timer has run
		end = context.DeadlineExceeded
	}
	if last == nil {
		return &RefusedError{end}
	}
	return &RefusedError{&lastAnswerError{end, last}}
}

// lastAnswerError is the end of a context, told by what came before it.
type lastAnswerError struct{ end, answer error }

// Error tells the answer alone: whoever gave the context knows that it has ended, and says so.
func (e *lastAnswerError) Error() string { return "last answer: " + e.answer.Error() }

// Unwrap returns both.
func (e *lastAnswerError) Unwrap() []error { return []error{e.end, e.answer} }
