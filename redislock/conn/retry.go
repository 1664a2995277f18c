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
	// failover is under way, a slot is on its way to another node.
	patience = 2 * time.Second

	// mostRedirects is how often a call follows MOVED and ASK at least, however long that takes. Nodes that point at
	// each other agree within moments.
	mostRedirects = 16

	// fewRedirects is how often it does so without a pause.
	fewRedirects = 2

	// mostEvals is how often a call is told that its script is not known before it gives up. Once is usual; in a
	// pipeline a SCRIPT FLUSH may come between.
	mostEvals = 3
)

// Try is what a call has been told so far by servers that did not run it, and how it is to be sent next. The zero value
// is a new call's. A transport judges what became of a try ([Library.Judge]), takes in by itself what the judgement
// says of its servers, and asks Next whether to go on.
type Try struct {
	Asking     string // the node to ask this time only, after ASK
	Redirected bool   // for transports that let their library follow redirects: it is to do so from now on
	Alone      bool   // a bundle the call was in was not run
	Evals      int    // how often a server did not know the script: it is sent by its source if that is positive

	redirects int       // MOVED and ASK
	replaced  int       // how often a server was not the primary any more
	since     time.Time // of the first answer that asks for patience
}

// Next takes the error of one try, and what it means. It returns an error if that was the last try, and otherwise
// whether to pause before the next. The error is a [RefusedError] unless it is unknown whether the call has run.
// failsOver says that another server may soon answer in the place of one that cannot be reached.
func (t *Try) Next(j Judgement, err error, failsOver bool) (wait bool, final error) {
	t.Asking = ""
	switch j.Verdict {
	case Unknown:
		return false, err
	case Unsent:
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
		late := t.Impatient()
		return t.redirects > fewRedirects, refusedIf(late && t.redirects > mostRedirects, err)
	case Elsewhere: // whoever is the primary now is found at once, or soon
		t.replaced++
		return t.replaced > 1, refusedIf(t.Impatient(), err)
	case Unreached:
		return true, refusedIf(t.Impatient() || !failsOver, err)
	case Later:
		return true, refusedIf(t.Impatient(), err)
	case Refused:
	}
	return false, refusedIf(true, err)
}

// NextSubscribe is Next for a subscription. To subscribe twice does no harm, so a connection that broke is no end.
func (t *Try) NextSubscribe(j Judgement, err error, failsOver bool) (wait bool, final error) {
	wait, final = t.Next(j, err, failsOver)
	if final != nil && j.Verdict == Unknown && !j.Answered && !t.Impatient() {
		return true, nil
	}
	return wait, final
}

// Impatient reports whether the call has been tried again for long enough, which is 2 seconds since this was asked
// first.
func (t *Try) Impatient() bool {
	if t.since.IsZero() {
		t.since = time.Now()
	}
	return time.Since(t.since) > patience
}

// AsRefused returns an error of a call that has not run as a [RefusedError].
func AsRefused(err error) error {
	var refusal *RefusedError
	if errors.As(err, &refusal) {
		return err
	}
	return &RefusedError{err}
}

// refusedIf returns err as a refusal if it is the end, and else nil.
func refusedIf(end bool, err error) error {
	if !end {
		return nil
	}
	return AsRefused(err)
}

// Pause waits a moment before a call is tried again: 20 ms, give or take a half, so that those who were refused
// together do not come back together. It returns a [RefusedError] if ctx ended.
func Pause(ctx context.Context) error {
	if !enginekit.Pause(ctx, 10*time.Millisecond+rand.N(20*time.Millisecond)) {
		return &RefusedError{ctx.Err()}
	}
	return nil
}
