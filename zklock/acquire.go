// Acquire: one request from the first question to the grant. put.go makes its node, queue.go reads the queue and waits,
// grant.go makes a hold of it; entry.go keeps what the driver knows of the request.
//
// What is known of a request stays in its entry: its node, its blocker, the attempt to make its node. So an Acquire
// whose context has ended leaves a place in the queue, and the next Acquire of the same ID goes on from there
// (Traits.Resumes). A step that fails with the connection is repeated over the next, until ctx ends.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// attempt is one Acquire or Requeue under way. It has the entry's turn, so only one goroutine works on the request at a
// time.
type attempt struct {
	d *Driver
	e *entry
	r *driver.Request
	// give is a hold that is given back in the same step as the node is made, whose turn the attempt has too; nil if
	// there is none.
	give *entry
}

// Acquire puts a node into the lock's queue, and blocks until no node before it is in its way. A wait survives broken
// connections and changes of the leader. If the session ends, the wait begins again at the end of the queue. When ctx
// ends, the node stays in the queue until the request is asked again or undone by Release.
//
// It costs one round trip if the queue is empty. Otherwise it costs three, and one more to learn who the holder is
// unless that is the node directly before. The hand-over costs another: after the server's message about the node
// before it, the waiter reads the queue.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil)
}

// acquire acquires r, and gives back the hold give in the same step if that is not nil.
func (d *Driver) acquire(ctx context.Context, r *driver.Request, give *entry) (driver.Grant, error) {
	a := &attempt{d: d, r: r, give: give}
	defer a.keep() // gives up the turn of give, however this ends
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.enterTurn(ctx, r)
	if err != nil {
		return driver.Grant{}, err
	}
	defer e.give()
	a.e = e
	g, err := a.run(ctx)
	// Nothing of a definite refusal is left, so the same request may be asked again.
	if err != nil && driver.IsDefinite(err) {
		d.drop(e)
	}
	return g, err
}

// servable refuses what can never be granted, before anything is sent. Each error matches driver.ErrUnsupported.
func servable(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("zk: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.Named:
		return fmt.Errorf("zk: named owners: a node belongs to one session: %w", driver.ErrUnsupported)
	// Only the read/write lock has another mode than the exclusive one.
	case r.Mode > driver.Upgradeable || r.Kind != driver.KindRWMutex && r.Mode != driver.Exclusive:
		return fmt.Errorf("zk: mode %d of a %s: %w", r.Mode, r.Kind, driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("zk: a lock's name has 1 to %d bytes, not %d: %w", maxName, len(r.Name),
			driver.ErrUnsupported)
	}
	return nil
}

// maxName is the longest name of a lock, in bytes. Encoded it has up to three times as many, which ZooKeeper allows.
const maxName = 512

// errAgain says that the situation has changed, and must be looked at again. It never leaves the package. It is an
// error so that every step has one way to hand back to run.
var errAgain = errors.New("zk: look again")

// run takes one step after the other until the request is granted or refused. Each turn finds the link and the phase
// anew, because the connection, the session and the request itself may have changed in the last one.
func (a *attempt) run(ctx context.Context) (driver.Grant, error) {
	a.remind() // the caller may be another than the one that was told before
	for {
		if g, done, err := a.ended(); done {
			return g, err
		}
		l, err := a.d.ready(ctx, a.e.wait.gone, a.reach(), false)
		if err != nil {
			return driver.Grant{}, a.explain(ctx, err)
		}
		a.join(l.s)
		if err = a.advance(ctx, l); err == nil {
			err = a.grant(ctx, l)
		}
		if err != nil && !isPassing(err) {
			return driver.Grant{}, a.explain(ctx, err)
		}
	}
}

// reach is how long the request waits for a server to talk to. A request with a place in a queue does not give it up
// while the session may live.
func (a *attempt) reach() time.Duration {
	if s := a.e.s; s != nil && (a.e.path != "" || a.e.wait.making != nil) {
		return max(reach, s.timeout)
	}
	return reach
}

// remind tells a caller that takes up a wait again who is in the way.
func (a *attempt) remind() {
	if w := a.e.wait; w != nil && w.blocker != "" && a.r.Waiting != nil {
		a.r.Waiting(w.held)
	}
}

// isPassing reports whether err is over as soon as there is a connection again, or a newer look at the queue. A session
// that is over counts too: in the next one the request begins again, at the end of the queue.
func isPassing(err error) bool {
	return errors.Is(err, errAgain) || errors.Is(err, errNoAnswer) || errors.Is(err, errOver) ||
		errors.Is(err, errStale)
}

// ended reports whether the request is granted or taken back. A copy of a granted request gets the same grant.
func (a *attempt) ended() (g driver.Grant, done bool, err error) {
	e := a.e
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	switch e.phase {
	case held:
		return driver.Grant{
			Token: uint64(e.czxid) * passes, Tokens: e.tokens, Nonce: e.id,
			Sent: e.s.Confirmed(), Lease: e.s.timeout, Session: e.s,
		}, true, nil
	case ended:
		reason, _ := a.d.gone.Epitaph(e.id)
		return g, true, lostError(e.key, reason)
	// A node that was not made yet, or that is in the queue, is neither granted nor gone.
	case asking:
	}
	return g, false, nil
}

// join makes the request one of session s. What it had in an earlier session has gone with that: nodes are ephemeral.
// Nothing has to be undone there: the servers remove the nodes with the session, and a making that is under way can
// make none in a session that is over.
func (a *attempt) join(s *session) {
	e := a.e
	if e.s == s {
		return
	}
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	e.s, e.path, e.czxid = s, "", 0
	e.wait.making, e.wait.blocker = nil, ""
}

// advance returns without an error when nobody is in the way any more. It makes the node, reads the queue, and waits,
// each only if that was not done in an earlier turn.
func (a *attempt) advance(ctx context.Context, l *link) error {
	w := a.e.wait
	if err := l.s.admit(ctx, w.gone, a.reach()); err != nil {
		return err
	}
	if err := a.trust(ctx, l); err != nil {
		return err
	}
	// The path is empty until the node is known to be made. A node that is alone in its queue has the lock at once.
	if a.e.path == "" {
		alone, err := a.put(ctx, l)
		if err != nil || alone {
			return err
		}
	}
	// Without a blocker the queue has to be read: it is not known who stands in front.
	if w.blocker == "" {
		free, err := a.look(ctx, l)
		if err != nil || free {
			return err
		}
	}
	return a.await(ctx, l)
}

// trust has the session confirmed if the last confirmation was long ago. This process may have stood still, and then
// read a message that was sent before its session ended. Without that, the queue that is read next could be older than
// the end of the session, and could show a node that has gone.
func (a *attempt) trust(ctx context.Context, l *link) error {
	if l.s.isTrusted() {
		return nil
	}
	return l.prove(ctx)
}

// isTrusted reports whether the session was confirmed within three quarters of its timeout. Only then a look at the
// queue may grant.
func (s *session) isTrusted() bool { return time.Since(s.Confirmed()) < s.timeout*3/4 }

// explain says what an error means to the caller. Whatever the request may have left is found by an undo, so nothing is
// repaired here.
func (a *attempt) explain(ctx context.Context, err error) error {
	var already *driver.HeldError
	switch {
	case errors.As(err, &already), errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrClosed):
		return err
	case errors.Is(err, driver.ErrLost):
		reason, _ := a.d.reasonOf(a.e)
		return lostError(a.e.key, reason)
	case errors.Is(err, errRetired): // says more than that the time is over
		return classed("lock", a.e.key.Name, err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// There may be a node of it, so "nothing was sent" would be wrong.
	if w := a.e.wait; a.e.path != "" || w != nil && w.making != nil {
		return classed("lock", a.e.key.Name, maybeSent(err))
	}
	return classed("lock", a.e.key.Name, err)
}

// reasonOf returns how a request of this driver has ended, if it has.
func (d *Driver) reasonOf(e *entry) (driver.LostReason, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone.Epitaph(e.id)
}
