package interlock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
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
	s := c.in()
	if err := shell.CheckCall(s.CheckMade(), ctx); err != nil {
		return nil, err
	}
	adopter, err := s.Adopter()
	if err != nil {
		return nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	h, m, err := parseHandle(s, handle)
	if err != nil {
		return nil, err
	}
	at := s.NewCall()
	lease, err := shell.AdoptLock(ctx, m, adopter, h, at)
	if err != nil {
		shell.TellFailed(ctx, m, nil, at, err)
		return nil, err
	}
	shell.TellAcquired(ctx, m, lease, at)
	return leaseOf(lease), nil
}

// parseHandle returns what a handle says, and the lock with the options that it asks for.
func parseHandle(c *shell.Client, handle string) (h driver.Handle, m *core.Lock, err error) {
	if h, err = driver.ParseHandle(handle); err != nil {
		return h, nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	key := driver.Key{Kind: h.Kind, Name: h.Name}
	if err = h.Of(c.Machine.Traits); err == nil && h.Named {
		err = fmt.Errorf("the hold is that of a named owner, which stays its own: lock as the same owner: %w",
			ErrUnsupported)
	}
	if err != nil {
		return h, nil, shell.Wrap("adopt", key, err)
	}
	o := &LockOptions{Lease: h.Lease, Label: h.Label}
	switch h.Kind {
	case driver.KindMutex:
		m = publicOf(c).Mutex(h.Name, o).inner()
	case driver.KindRWMutex:
		m = publicOf(c).RWMutex(h.Name, o).modeMutex(h.Mode)
	case driver.KindSemaphore:
		m = publicOf(c).Semaphore(h.Name, h.Limit, o).permits(h.Weight)
	case driver.KindElection:
		o.Label = ""
		m = publicOf(c).Election(h.Name, o).candidate(h.Label)
	default:
		return h, nil, shell.Wrap("adopt", key, fmt.Errorf("a lock of kind %q: %w", h.Kind, ErrUnsupported))
	}
	return h, m, m.Terms.Err
}
