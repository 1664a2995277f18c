package interlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/core"
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

	if err := checkCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if d <= 0 || d > longest {
		return fmt.Errorf("interlock: extend %q: the duration %v must be more than 0 and at most %v", l.Name(), d,
			longest)
	}
	c := clientOfLock(h.Lock)
	end := c.reading().Plus(d)
	// Again only if a conversion has moved the hold to another grant meanwhile.
	for {
		grants, err := mayLast(h, d, end)
		if err != nil {
			return namedError(h, "extend", err)
		}
		err = c.renewAll(ctx, grants, trust.LeaseFor(d))
		if last, ended := extendedHold(h, grants, end, err); last {
			return namedError(h, "extend", withOperation("extend", h.Lock.Key(), ended))
		}
	}
}

// mayLast returns the grants on which l rests, or says why it cannot last until end, which was d away when Extend
// began.
func mayLast(l *core.Hold, d time.Duration, end trust.Instant) ([]*core.EngineHold, error) {
	c := clientOfLock(l.Lock)
	c.lock()
	defer c.unlock()
	now := c.core.Now()
	l.Check(now)
	if err := l.Ended(); err != nil {
		return nil, err
	}
	if last := l.MaxHoldEnd(); end > last {
		return nil, fmt.Errorf("interlock: extend %q by %v: its MaxHold ends in %v", l.Lock.Key().Name, d,
			last.Since(now).Round(time.Millisecond))
	}
	return l.EngineHolds(), nil
}

// renewAll renews each of the grants for at least lease, one after the other. It does nothing on engines without
// leases.
func (c *Client) renewAll(ctx context.Context, grants []*core.EngineHold, lease time.Duration) error {
	if !c.core.HasLeases() {
		return nil
	}
	for _, g := range grants {
		if err := c.renewNow(ctx, g, lease); err != nil {
			return err
		}
	}
	return nil
}

// extendedHold decides what the renewals of grants mean. They count for nothing if a conversion came in between, because
// the hold rests on other grants then: last is false, and Extend begins again. Otherwise ended is the result. A fixed
// lease is moved to end if the hold still lives.
func extendedHold(l *core.Hold, grants []*core.EngineHold, end trust.Instant, err error) (last bool, ended error) {
	c := clientOfLock(l.Lock)
	c.lock()
	defer c.unlock()
	l.Check(c.core.Now())
	now := l.Ended()
	switch {
	case now == nil && !slices.Equal(grants, l.EngineHolds()):
		return false, nil
	case err != nil:
		return true, err
	case now != nil:
		return true, now
	}
	if l.Lock.Terms.NoRenew && end > l.End {
		l.End = end
	}
	c.core.Reschedule(l.Engine)
	if l.UpgradePair != nil {
		l.UpgradePair.End = l.End
		c.core.Reschedule(l.UpgradePair.Engine)
	}
	return true, nil
}
