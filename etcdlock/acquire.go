// Acquire: one request from the first question to the grant. enqueue.go puts its key into the queue, wait.go waits
// behind others, entry.go keeps what the driver knows of the request; hold makes it a hold.
//
// The walk has four steps: enqueue (the key), look (the queue), await (a wake-up), hold (the grant). A step leaves its
// result in the entry and nowhere else. So an Acquire whose context has ended leaves a request that the next Acquire of
// the same ID takes up (Traits.Resumes), and nothing on the servers depends on the goroutine that asked.

package etcdlock

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
	d      *Driver
	e      *entry
	r      *driver.Request
	give   *giving // a hold that is given back in the same step; nil if there is none
	unsure bool    // some request of this attempt, or of one before it, was left without an answer
	told   string  // the key of the holder that the caller was told of last
}

// Acquire puts a key into the lock's queue, and blocks until no key before it is in its way. A wait survives broken
// connections and changes of the leader. If the session ends, the wait ends too, with an error that matches
// driver.ErrLost: its key is gone. After any error that is not definite, the caller must undo the request with Release.
//
// It costs one transaction if nothing is in the way. Otherwise it costs two reads more: one when the watch has begun,
// and one after the wake-up, which sees whether the session still lives and the lock is ours.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.acquire(ctx, r, nil)
}

// acquire acquires r, and gives back the hold give in the same step if that is not nil.
func (d *Driver) acquire(ctx context.Context, r *driver.Request, give *giving) (driver.Grant, error) {
	if err := servable(r); err != nil {
		return driver.Grant{}, err
	}
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return driver.Grant{}, err
	}
	defer leave()
	e, err := d.enterTurn(bounded, r)
	if err != nil {
		return driver.Grant{}, err
	}
	defer e.yield()
	a := &attempt{d: d, e: e, r: r, give: give, unsure: e.mayBeMade()}
	if err := a.run(bounded); err != nil {
		d.drop(e) // it stays if anything may be left of it
		return driver.Grant{}, a.explain(ctx, err)
	}
	return e.grant(), nil
}

// maxName is the longest name of a lock, in bytes. Package driver allows names of that length on every engine.
const maxName = 512

// servable refuses what can never be granted, before anything is sent. Each error matches driver.ErrUnsupported.
func servable(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("etcd: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.Named:
		return fmt.Errorf("etcd: named owners: a key belongs to one lease: %w", driver.ErrUnsupported)
	case r.Mode > driver.Upgradeable,
		onlyOne(r.Kind) && r.Mode != driver.Exclusive,
		r.Kind == driver.KindSemaphore && r.Mode == driver.Upgradeable:
		return fmt.Errorf("etcd: mode %d of a %s: %w", r.Mode, r.Kind, driver.ErrUnsupported)
	case r.Kind == driver.KindSemaphore && (r.Limit < 1 || r.Mode == driver.Shared &&
		(r.Weight < 1 || r.Weight > r.Limit)):
		return fmt.Errorf("etcd: %d permits of %d: %w", r.Weight, r.Limit, driver.ErrUnsupported)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("etcd: a lock's name has 1 to %d bytes, not %d: %w", maxName, len(r.Name),
			driver.ErrUnsupported)
	}
	return nil
}

// run takes one step after the other until the request is granted or refused. What the next step is depends only on the
// entry, so an Acquire that comes back to a request goes on where the last one left it.
func (a *attempt) run(ctx context.Context) error {
	e := a.e
	for {
		err := e.whyOver()
		if err != nil {
			return err
		}
		switch {
		case e.isGranted():
			return nil
		// The key is not in the queue yet.
		case e.revision == 0:
			err = a.enqueue(ctx)
		// It is in the queue, and the queue was not read yet.
		case e.view.revision == 0:
			err = a.look(ctx)
		case e.view.granted:
			err = a.hold(ctx)
		// Somebody is in the way.
		default:
			a.tell()
			err = a.await(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// isGranted reports whether the request is a hold.
func (e *entry) isGranted() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.granted
}

// grant describes the hold. Its lease is the session's: trust counts from the last answered sign of life, whose instant
// Session tells. The caller has the turn, and e is granted.
func (e *entry) grant() driver.Grant {
	return driver.Grant{
		Token: e.token(), Tokens: recordOf(e.r).Tokens, Nonce: e.r.ID,
		Lease: e.session.timeout, Session: e.session,
	}
}

// hold makes the request, which nothing is in the way of, a hold. The session must still be trusted now: this process
// may have stood still since the servers answered.
func (a *attempt) hold(ctx context.Context) error {
	e, d := a.e, a.d
	// The key stays: the error is not definite, so the portable layer undoes the request.
	if e.revision > lastRevision {
		return fmt.Errorf("etcd: revision %d makes no token below 2^63: %w", e.revision, driver.ErrUnavailable)
	}
	// A semaphore's waiter that gets in writes so into its key: the request that watches it looks then.
	if e.r.Kind == driver.KindSemaphore && e.waited {
		if err := a.announce(ctx); err != nil {
			return err
		}
	}
	d.mu.Lock()
	s := e.session
	var tell func()
	switch {
	// The answer of the servers may be older than the session's end: this process may have stood still between the two.
	// Then the next owner may be inside already.
	// Likewise if it must not get any new holds; see retire.go. The key ends with it.
	case s.lost != nil || s.refused.Err() != nil || !time.Now().Before(s.end()):
		e.end(driver.LostSession)
	case e.ended == "" && !e.released && !d.closed:
		e.granted = true
		// In one step with granted, under the mutex that lose takes: a session that is lost now either tells this hold
		// or is seen above.
		s.holds[e.revision] = e
		// The call came before the answer to the request.
		if s.calls[e.revision] != 0 {
			delete(s.calls, e.revision)
			tell = e.noticeCall()
		}
	}
	d.mu.Unlock()
	if tell != nil {
		tell()
	}
	return nil // run looks at what it has become
}

// tell tells the caller who is in the way, if that has changed. The key is enough to compare: one that is created anew
// stands behind the request.
func (a *attempt) tell() {
	holder := &a.e.view.holder
	if a.r.Waiting != nil && a.told != holder.key {
		a.told = holder.key
		a.r.Waiting(holder.heldError(a.r.Key))
	}
}

// explain returns the error that the caller gets for err. A refusal is only definite if no copy of the request is
// without an answer.
func (a *attempt) explain(ctx context.Context, err error) error {
	switch {
	case a.unsure && driver.IsDefinite(err) && !errors.Is(err, driver.ErrClosed):
		// Another copy of the request may have been granted, or may be yet.
		return errors.Join(&driver.UnavailableError{Op: "lock", Name: a.r.Name, Err: errCopies}, err)
	case errors.Is(err, driver.ErrLost), driver.IsDefinite(err):
		return err
	}
	if err = a.d.failure(ctx, err); errors.Is(err, driver.ErrClosed) {
		return err
	}
	// A key may be in the queue, or the hold to be given back may be over, so "not sent" would be untrue.
	return classed("lock", a.r.Name, err, a.unsure || a.give != nil || a.e.revision != 0)
}

// errCopies says why a refusal is not the last word.
var errCopies = errors.New("etcd: the request was sent more than once")
