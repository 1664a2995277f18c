package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// Adopt takes over a hold that another process has given away by a handle (lease_handle.go). What it returns is a hold
// like any other, except that it never passes on or stays after its Unlock.

// Adopt goes on with a hold that another process has given away by [Lease.Handle], or that "interlock acquire" has
// taken. In one step, with nobody in between, the hold becomes the lease that is returned, and the other process's
// lease ends. The new lease is renewed and unlocked like any other. The first to adopt a hold gets it. Everybody after
// that gets a *LostError, and so does whoever comes when the hold has ended.
//
// The lease has a new token: a fence that has seen its [Lease.Stamp] refuses what the other process still sends. So use
// that stamp once before you rely on it. Its owner is a new one without a name; its lease and label are those of the
// handle. Other LockOptions do not travel: MaxHold, MinHold and NoRenew end with the other process's lease.
//
// A handle of another engine gets ErrUnsupported, like one of another version of this package. A handle of another
// store, or of another database, prefix or name space, names a hold that is not there. The *LostError's Cause says so
// if the handle shows it. A hold of a named owner gets ErrUnsupported.
//
// If the engine does not answer (ErrUnavailable) the hold may have been adopted: it is then released in the background,
// which ends it. If another Adopt of the handle says that it is lost, it was adopted. It costs one round trip.
func (c *Client) Adopt(ctx context.Context, handle string) (*Lease, error) {
	if err := checkCall(c.checkMade(), ctx); err != nil {
		return nil, err
	}
	adopter, err := c.adopter()
	if err != nil {
		return nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	h, m, err := c.parseHandle(handle)
	if err != nil {
		return nil, err
	}
	at := c.newCall()
	lease, err := adoptLock(ctx, m, adopter, h, at)
	if err != nil {
		tellFailed(ctx, m, nil, at, err)
		return nil, err
	}
	tellAcquired(ctx, m, lease, at)
	return leaseOf(lease), nil
}

// parseHandle returns what a handle says, and the lock with the options that it asks for.
func (c *Client) parseHandle(handle string) (h driver.Handle, m *core.Lock, err error) {
	if h, err = driver.ParseHandle(handle); err != nil {
		return h, nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	key := driver.Key{Kind: h.Kind, Name: h.Name}
	if err = h.Of(c.core.Traits); err == nil && h.Named {
		err = fmt.Errorf("the hold is that of a named owner, which stays its own: lock as the same owner: %w",
			ErrUnsupported)
	}
	if err != nil {
		return h, nil, wrap("adopt", key, err)
	}
	o := &LockOptions{Lease: h.Lease, Label: h.Label}
	switch h.Kind {
	case driver.KindMutex:
		m = c.Mutex(h.Name, o).inner()
	case driver.KindRWMutex:
		m = c.RWMutex(h.Name, o).modeMutex(h.Mode)
	case driver.KindSemaphore:
		m = c.Semaphore(h.Name, h.Limit, o).permits(h.Weight)
	case driver.KindElection:
		o.Label = ""
		m = c.Election(h.Name, o).candidate(h.Label)
	default:
		return h, nil, wrap("adopt", key, fmt.Errorf("a lock of kind %q: %w", h.Kind, ErrUnsupported))
	}
	return h, m, m.Terms.Err
}

// adoptLock makes the hold of h one of m's.
func adoptLock(ctx context.Context, m *core.Lock, adopter driver.Adopter, h driver.Handle, at core.Call) (*core.Hold, error) {
	c := clientOfLock(m)
	c.lock()
	if c.core.Closed {
		c.unlock()
		return nil, wrap("adopt", m.Key(), ErrClosed)
	}
	c.core.Background.Add(1) // under Machine.Mu, so that Close waits for it
	defer c.core.Background.Done()
	c.unlock()
	g, l := newLocalHold(m, nil)
	r := driverRequest(m, g.ID, l.Owner)
	r.Tokens, r.Try, r.Lost = 1, true, lossOf(g)
	askForRecalls(g, &r)
	// A hold that has come from elsewhere neither passes on nor is retained.
	r.Retains, g.Recallable = false, false
	var answer driver.Grant
	err := c.persist(ctx, "adopt", m.Key(), func(ctx context.Context) (err error) {
		answer, err = adopter.Adopt(ctx, h.ID, &r)
		return err
	})
	c.lock()
	defer c.unlock()
	now := c.core.Now()
	switch {
	// Gone, or on another store.
	case errors.Is(err, ErrLost):
		return nil, c.notHere(h, err)
	case err != nil:
		if !driver.IsDefinite(err) || errors.Is(err, ErrClosed) { // Close has ended an attempt that may have arrived
			g.ReleaseInBackground(true)
		}
		return nil, err
	case c.core.Closed:
		g.ReleaseInBackground(false)
		return nil, wrap("adopt", m.Key(), ErrClosed)
	// It ended before its answer was processed, so it was nobody's here.
	case g.Phase == grants.Revoked || c.core.ExpiredOnArrival(answer, now):
		g.ReleaseInBackground(false)
		return nil, &LostError{Kind: h.Kind, Name: h.Name, Token: answer.Token, Reason: LostExpired}
	}
	g.Accept(answer, now)
	g.Alone = true
	g.AddHold(l, at.Start, now, false)
	return l, nil
}

// notHere adds to err, which says that a hold is gone, that it may never have been on this store.
func (c *Client) notHere(h driver.Handle, err error) error {
	ours := storeMark(c.opts.Store)
	if h.Store == "" || ours == "" || h.Store == ours {
		return err
	}
	lost := &LostError{Kind: h.Kind, Name: h.Name, Token: h.Token, Reason: LostExpired}
	var told *LostError
	if errors.As(err, &told) {
		lost.Reason = told.Reason
	}
	lost.Cause = errors.New("or it is on another store: the handle was made with a URL of another host, database, " +
		"prefix or table")
	return lost
}
