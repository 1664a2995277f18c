// AcquireAll, the taking of several locks in one script (docs/rationale.md, Multi). Its bookkeeping is that of
// acquire.go for each request; there is no queue, so there are no pushes.

package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.MultiAcquirer = (*Driver)(nil)

// mostTogether is how many locks one script takes: about half a millisecond of the server's time, as for renewals.
const mostTogether = 250

// AcquireAll takes several locks in one script, or none of them; it costs one round trip, as one lock does. It never
// waits: a lock that is held is a *driver.HeldError.
//
// In a Cluster the names must share a slot, which they do by a hash tag: {order-7}:stock and {order-7}:invoice.
// Elsewhere any names do. It is for mutexes of owners without a name and without a LockDelay, at most 250; other lists
// are refused with an error matching driver.ErrUnsupported. So is a list with a lock whose dead holder or queue has not
// been cleared up yet: the caller then takes the locks one by one, which clears it up.
func (d *Driver) AcquireAll(ctx context.Context, requests []*driver.Request) ([]driver.Grant, error) {
	if err := d.checkAll(requests); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := multiAttempt{d: d, requests: requests}
	if err := t.enter(); err != nil {
		return nil, err
	}
	grants, err := t.ask(ctx)
	if err == nil {
		err = t.hold()
	}
	if err != nil {
		if t.unknown && driver.IsDefinite(err) && d.withdraw(ctx, requests, t.entries) {
			return nil, err
		}
		err = t.explain(err)
		// Without a definite answer the entries stay until it is known that nothing is left of the request.
		t.leave(driver.IsDefinite(err))
		return nil, err
	}
	return grants, nil
}

// checkAll refuses what one script cannot take.
func (d *Driver) checkAll(requests []*driver.Request) error {
	if len(requests) == 0 || len(requests) > mostTogether {
		return fmt.Errorf("redis: %d locks in one step, want 1 to %d: %w",
			len(requests), mostTogether, driver.ErrUnsupported)
	}
	for i, r := range requests {
		switch err := check(r); {
		case err != nil:
			return err
		case r.Kind != driver.KindMutex || r.Mode != driver.Exclusive || r.Named || r.LockDelay > 0:
			return fmt.Errorf("redis: %s %q in one step with others, for a named owner or with a delay: %w",
				r.Kind, r.Name, driver.ErrUnsupported)
		case slices.ContainsFunc(requests[:i], func(other *driver.Request) bool {
			return other.Key == r.Key || other.ID == r.ID
		}):
			return fmt.Errorf("redis: %s %q or its request is there twice: %w", r.Kind, r.Name, driver.ErrUnsupported)
		}
	}
	// One key decides the slot of a call in a Cluster, so all must be of that slot.
	if !d.conn.Sharded() {
		return nil
	}
	_, slot := d.names.lock(requests[0].Key)
	for _, r := range requests[1:] {
		if _, other := d.names.lock(r.Key); other != slot {
			return fmt.Errorf("redis: %q and %q are in different slots; names with the same {tag} are in one: %w",
				requests[0].Name, r.Name, driver.ErrUnsupported)
		}
	}
	return nil
}

// multiAttempt is one AcquireAll under way. Only the calling goroutine uses it.
type multiAttempt struct {
	d        *Driver
	requests []*driver.Request
	entries  []*entry // by the index of the request; shorter while enter fails
	ran      bool     // a call may have run, as in attempt
	unknown  bool     // a call has an unknown outcome, as in attempt
}

// enter registers the requests, or says why they must not be asked. If one is refused, nothing was sent, so those
// before it are taken out for good.
func (t *multiAttempt) enter() error {
	for _, r := range t.requests {
		e, err := t.d.enter(r)
		if err != nil {
			t.leave(true)
			return err
		}
		t.entries = append(t.entries, e)
	}
	return nil
}

// leave ends the attempt without a hold, for each request.
func (t *multiAttempt) leave(forGood bool) {
	for i, e := range t.entries {
		t.d.leave(t.requests[i].ID, e, t.ran, forGood)
	}
}

// hold registers all holds. If one was released meanwhile, the error makes AcquireAll fail, and the caller undoes all
// of them.
func (t *multiAttempt) hold() error {
	for i, e := range t.entries {
		if err := t.d.hold(t.requests[i].ID, e); err != nil {
			return err
		}
	}
	return nil
}

// ask runs the script once. The requests ask as tries, which is how a hold of this kind is stored.
func (t *multiAttempt) ask(ctx context.Context) ([]driver.Grant, error) {
	d := t.d
	call := Call{Script: multiScript, Replicas: d.opts.Replicas, ReplicaTimeout: d.opts.ReplicaTimeout}
	for _, r := range t.requests {
		a := d.newAttempt(r, nil, "")
		a.setTail('t')
		call.Slot = a.slot
		call.Keys = append(call.Keys, a.keys[:]...)
		call.Args = append(call.Args, a.args[:4]...)
	}
	sent, answer := t.send(ctx, &call)
	if d.mayRepeat(ctx, answer.Err) && !t.wasWithdrawn() { // once, as attempt.askTwice does
		first := answer.Err
		sent, answer = t.send(ctx, &call)
		answer.Err = ofBoth(first, answer.Err)
	}
	if answer.Err != nil {
		if ctx.Err() != nil && !t.d.isClosed() && !isRefusal(answer.Err) {
			return nil, ctx.Err()
		}
		return nil, answer.Err
	}
	word, rest, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "G":
		// A failover may forget these grants, so they do not count.
		if answer.Acked < d.opts.Replicas {
			t.unknown = true
			return nil, d.tooFewReplicas(answer.Acked)
		}
		return t.granted(rest, sent)
	case "K":
		return t.again(ctx)
	case "H":
		return nil, t.heldBy(rest)
	case "U":
		return nil, fmt.Errorf("redis: one of the locks has to be asked for by itself: %w", driver.ErrUnsupported)
	}
	a := parseReply(answer) // gone, broken, adopted, newer
	return nil, a.refusal(t.requests[0])
}

// send sends the call once. All requests share its fate, because the script is atomic.
func (t *multiAttempt) send(ctx context.Context, call *Call) (sent time.Time, answer Reply) {
	sent = time.Now() // before the request, so not later than the server's own instant
	answer = t.d.conn.Call(ctx, call)
	t.ran = t.ran || !isRefusal(answer.Err)
	switch err := answer.Err; {
	case err == nil:
	case t.d.isClosed():
		answer.Err = driver.ErrClosed
	// The script may have run, so the holds must be undone before their IDs are forgotten; see attempt.failed.
	case judgeError(err, false).class == mayHaveRun && !isRefusal(err):
		t.unknown = true
		for _, e := range t.entries {
			t.d.markOutcomeUnknown(e)
		}
	}
	return sent, answer
}

// wasWithdrawn reports whether a release of one of the requests was asked for.
func (t *multiAttempt) wasWithdrawn() bool {
	for i, e := range t.entries {
		if t.d.wasWithdrawn(t.requests[i].ID, e) {
			return true
		}
	}
	return false
}

// granted reads TOKEN and TOKENS of each request, behind NOW. All leases count from before the call was sent.
func (t *multiAttempt) granted(rest string, sent time.Time) ([]driver.Grant, error) {
	words := strings.Fields(rest)
	grants := make([]driver.Grant, len(t.requests))
	for i, r := range t.requests {
		g := driver.Grant{Nonce: r.ID, Sent: sent, Lease: r.Lease}
		if len(words) == 1+2*len(grants) {
			g.Token, _ = strconv.ParseUint(words[1+2*i], 10, 64)
			g.Tokens, _ = strconv.Atoi(words[2+2*i])
		}
		if g.Token == 0 || g.Tokens < 1 {
			return nil, fmt.Errorf("the server's answer %q for %d locks cannot be read", rest, len(grants))
		}
		grants[i] = g
	}
	return grants, nil
}

// again asks for each request by itself, when the script has said that all IDs are holds already: an earlier copy of
// the call has run. Nothing is taken anew then, and acquire knows every form that a lock may have by now.
func (t *multiAttempt) again(ctx context.Context) ([]driver.Grant, error) {
	grants := make([]driver.Grant, len(t.requests))
	for i, r := range t.requests {
		same := *r
		same.Try = true
		g, err := t.d.Acquire(ctx, &same)
		if errors.Is(err, driver.ErrHeld) {
			err = errGone(r.Key) // it has ended since the script ran
		}
		if err != nil {
			t.unknown = true
			return nil, err
		}
		grants[i] = g
	}
	return grants, nil
}

// heldBy reads INDEX, and then who is in the way as in an answer of acquire.
func (t *multiAttempt) heldBy(rest string) error {
	index, rest, _ := strings.Cut(rest, " ")
	a := reply{verdict: held}
	a.parseHolder(rest)
	i, err := strconv.Atoi(index)
	if err != nil || i < 1 || i > len(t.requests) || a.verdict != held {
		return fmt.Errorf("the server's answer %q for %d locks cannot be read", rest, len(t.requests))
	}
	return a.refusal(t.requests[i-1])
}

// explain turns an error into one of the seam's classes; see attempt.explain, whose rules it follows.
func (t *multiAttempt) explain(err error) error {
	first := t.requests[0].Key
	copies := t.unknown || slices.ContainsFunc(t.entries, t.d.outcomeUnknown)
	switch {
	case errors.Is(err, driver.ErrLost), isEnd(err) && !isRefusal(err):
		return err
	case !driver.IsDefinite(err):
		return t.d.sorted("acquire", first, err, copies)
	case copies: // another copy of the requests may still be granted
		return errors.Join(err, &driver.UnavailableError{Op: "acquire", Name: first.Name})
	}
	return err
}
