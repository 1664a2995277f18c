package interlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
)

// Extend: a renewal in the caller's own time. renew.go sends it; the scheduler's own renewals go on beside it.

// Extend makes sure that the hold lasts at least d from now: once it has returned nil, Deadline is no earlier. On a
// hold with NoRenew this moves its end. It cannot go beyond MaxHold: then it returns an error and changes nothing. It
// blocks until the engine has answered, ctx ends, or half a lease is over.
//
// It costs one round trip on engines with leases, two for an upgraded hold, and none elsewhere. There a renewed hold
// lasts as long as its session or process anyway. An error that matches ErrUnavailable changes nothing that was known
// before. If an upgrade or a downgrade comes in between, what the hold has after it is extended, at the cost of further
// round trips.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	h := l.hold()
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if d <= 0 || d > longest {
		return fmt.Errorf("interlock: extend %q: the duration %v must be more than 0 and at most %v", l.Name(), d,
			longest)
	}
	c := shell.ClientOfLock(h.Lock)
	end := c.Reading().Plus(d)
	// Again only if a conversion has moved the hold to another grant meanwhile.
	for {
		grants, err := shell.MayLast(h, d, end)
		if err != nil {
			return shell.NamedError(h, "extend", err)
		}
		err = c.RenewAll(ctx, grants, trust.LeaseFor(d))
		if last, ended := shell.ExtendedHold(h, grants, end, err); last {
			return shell.NamedError(h, "extend", shell.WithOperation("extend", h.Lock.Key(), ended))
		}
	}
}
