package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// attempt is one Acquire or Requeue under way. It has the entry's turn.
type attempt struct {
	d    *Driver
	e    *entry
	r    *driver.Request
	give *entry // a hold, whose turn it has too, to be given back in the same step; nil if none
}

// Acquire puts a node into the lock's queue, and waits until no node is before it that is in its way. A wait survives
// broken connections and changes of the leader. When the session ends, it begins again at the end of the queue.
//
// It costs one round trip if the queue is empty, otherwise three and, unless the holder is the one that is directly
// before it, one more to learn who that is. The hand-over costs another: after the server's message about the node
// before it, it reads the queue.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil)
}

func (d *Driver) acquire(ctx context.Context, r *driver.Request, give *entry) (driver.Grant, error) {
	a := &attempt{d: d, r: r, give: give}
	defer a.keep()
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.enter(r)
	if err != nil {
		return driver.Grant{}, err
	}
	if err := e.take(ctx); err != nil {
		return driver.Grant{}, err
	}
	defer e.give()
	a.e = e
	g, err := a.run(ctx)
	if err != nil && driver.IsDefinite(err) {
		d.drop(e)
	}
	return g, err
}

// servable refuses what can never be granted.
func servable(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("zk: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.Named:
		return fmt.Errorf("zk: named owners: a node belongs to one session: %w", driver.ErrUnsupported)
	case r.Mode > driver.Upgradeable || r.Kind != driver.KindRWMutex && r.Mode != driver.Exclusive:
		return fmt.Errorf("zk: mode %d of a %s: %w", r.Mode, r.Kind, driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("zk: a lock's name has 1 to %d bytes, not %d: %w", maxName, len(r.Name),
			driver.ErrUnsupported)
	}
	return nil
}

// maxName is the longest name of a lock. Encoded it has three times as many bytes, which ZooKeeper allows.
const maxName = 512

// errAgain says that the situation has changed, and has to be looked at again.
var errAgain = errors.New("zk: look again")

// run takes one step after the other until the request is granted or refused.
func (a *attempt) run(ctx context.Context) (driver.Grant, error) {
	a.remind()
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

// reach is how long the request waits for a server to talk to. One that is queued does not give up its place while the
// session may live.
func (a *attempt) reach() time.Duration {
	if s := a.e.s; s != nil && (a.e.path != "" || a.e.wait.making != nil) {
		return max(reach, s.timeout)
	}
	return reach
}

// remind tells who takes up a wait again who is in the way.
func (a *attempt) remind() {
	if w := a.e.wait; w != nil && w.blocker != "" && a.r.Waiting != nil {
		a.r.Waiting(w.held)
	}
}

// isPassing reports whether err is over as soon as there is a connection again.
func isPassing(err error) bool {
	return errors.Is(err, errAgain) || errors.Is(err, errNoAnswer) || errors.Is(err, errOver) ||
		errors.Is(err, errStale)
}

// ended reports whether the request is granted or taken back.
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
	case asking:
	}
	return g, false, nil
}

// join makes the request one of session s. What it had in another is gone with that.
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

// advance returns when nobody is in the way any more.
func (a *attempt) advance(ctx context.Context, l *link) error {
	w := a.e.wait
	if err := a.trust(ctx, l); err != nil {
		return err
	}
	if a.e.path == "" {
		alone, err := a.put(ctx, l)
		if err != nil || alone {
			return err
		}
	}
	if w.blocker == "" {
		free, err := a.look(ctx, l)
		if err != nil || free {
			return err
		}
	}
	return a.await(ctx, l)
}

// trust has the session confirmed if that was long ago: this process may have stood still, and found a message that was
// sent before its session ended.
func (a *attempt) trust(ctx context.Context, l *link) error {
	if l.s.isTrusted() {
		return nil
	}
	return l.sync(ctx)
}

func (s *session) isTrusted() bool { return time.Since(s.Confirmed()) < s.timeout*3/4 }

// explain says what an error means to the caller. Whatever the request may have left is found by an undo.
func (a *attempt) explain(ctx context.Context, err error) error {
	var already *driver.HeldError
	switch {
	case errors.As(err, &already), errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrClosed):
		return err
	case errors.Is(err, driver.ErrLost):
		reason, _ := a.d.reasonOf(a.e)
		return lostError(a.e.key, reason)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if w := a.e.wait; a.e.path != "" || w != nil && w.making != nil { // there may be a node of it
		return classed("lock", a.e.key.Name, withoutServer(err))
	}
	return classed("lock", a.e.key.Name, err)
}

func (d *Driver) reasonOf(e *entry) (driver.LostReason, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone.Epitaph(e.id)
}
