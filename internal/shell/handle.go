package shell

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// AdoptLock makes the hold of h one of m's.
func AdoptLock(
	ctx context.Context,
	m *core.Lock,
	adopter driver.Adopter,
	h driver.Handle,
	at core.Call,
) (*core.Hold, error) {
	c := ClientOf(m)
	c.Lock()
	if c.Closed {
		c.Unlock()
		return nil, Wrap("adopt", m.Key(), driver.ErrClosed)
	}
	c.Background.Add(1) // under Machine.Mu, so that Close waits for it
	defer c.Background.Done()
	c.Unlock()
	g, l := newLocalHold(m, nil)
	r := DriverRequest(m, g.ID, l.Owner)
	r.Tokens, r.Try, r.Lost = 1, true, LossOf(g)
	askForRecalls(g, &r)
	// A hold that has come from elsewhere neither passes on nor is retained.
	r.Retains, g.Recallable = false, false
	var answer driver.Grant
	err := c.Persist(ctx, "adopt", m.Key(), func(ctx context.Context) (err error) {
		answer, err = adopter.Adopt(ctx, h.ID, &r)
		return err
	})
	c.Lock()
	defer c.Unlock()
	now := c.Now()
	switch {
	// Gone, or on another store.
	case errors.Is(err, driver.ErrLost):
		return nil, c.notHere(h, err)
	case err != nil:
		if !driver.IsDefinite(err) ||
			errors.Is(err, driver.ErrClosed) { // Close has ended an attempt that may have arrived
			g.ReleaseInBackground(true)
		}
		return nil, err
	case c.Closed:
		g.ReleaseInBackground(false)
		return nil, Wrap("adopt", m.Key(), driver.ErrClosed)
	// It ended before its answer was processed, so it was nobody's here.
	case g.Phase == grants.Revoked || c.ExpiredOnArrival(answer, now):
		g.ReleaseInBackground(false)
		return nil, &driver.LostError{Kind: h.Kind, Name: h.Name, Token: answer.Token, Reason: driver.LostExpired}
	}
	g.Accept(answer, now)
	g.Alone = true
	g.AddHold(l, at.Start, now, false)
	return l, nil
}

// notHere adds to err, which says that a hold is gone, that it may never have been on this store.
func (c *Client) notHere(h driver.Handle, err error) error {
	ours := StoreMark(c.Config.Store)
	if h.Store == "" || ours == "" || h.Store == ours {
		return err
	}
	lost := &driver.LostError{Kind: h.Kind, Name: h.Name, Token: h.Token, Reason: driver.LostExpired}
	var told *driver.LostError
	if errors.As(err, &told) {
		lost.Reason = told.Reason
	}
	lost.Cause = errors.New("or it is on another store: the handle was made with a URL of another host, database, " +
		"prefix or table")
	return lost
}

// MayTravel says why l cannot go on to another client, or returns nil. The caller holds Machine.Mu.
func MayTravel(l *core.Hold) error {
	switch _, err := ClientOf(l.Lock).Adopter(); {
	case l.Ended() != nil:
		return l.Ended()
	case err != nil:
		return err
	case l.Owner.Named:
		return fmt.Errorf("the owner has a name: lock as the same owner in the other process, and then unlock here: %w",
			driver.ErrUnsupported)
	case l.Below != nil || l.Mode() == driver.Upgradeable:
		return fmt.Errorf(
			"an upgradeable read, or what it was upgraded to, stays with its client: %w",
			driver.ErrUnsupported,
		)
	case l.Listeners != nil && (l.Listeners.Conversion != nil || l.Listeners.CondWait != nil):
		return fmt.Errorf("it is just being converted, or given up for a condition: %w", driver.ErrConflict)
	case l.Engine.Holder() != l || l.Links[core.OfGrant].Next != nil:
		return driver.ErrNested
	}
	return nil
}

// Adopter returns the engine as an Adopter, or says why its holds cannot go on to another client.
func (c *Client) Adopter() (driver.Adopter, error) {
	adopter, can := c.Driver.(driver.Adopter)
	reason, lacks := c.Traits.Lacking(driver.Adoption)
	switch {
	case !c.HasLeases():
		return nil, core.Unsupported(
			c.Traits,
			fmt.Sprintf("a hold ends with its client's %s, so it cannot go on in another",
				c.Traits.Lifetime),
		)
	case lacks:
		return nil, core.Unsupported(c.Traits, reason)
	case !can:
		return nil, core.Unsupported(c.Traits, "its driver is no driver.Adopter")
	}
	return adopter, nil
}

// StoreMark returns a hash that tells stores apart without saying where they are; empty if the store is not known. Its
// 6 bytes are enough for a hint in an error, which is all that it is for.
func StoreMark(store string) string {
	if store == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(store))
	return hex.EncodeToString(sum[:6])
}
