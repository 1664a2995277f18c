package interlock

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	if err := checkCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if d <= 0 || d > longest {
		return fmt.Errorf("interlock: extend %q: the duration %v must be more than 0 and at most %v", l.Name(), d,
			longest)
	}
	c := l.m.client()
	end := c.reading().Plus(d)
	// Again only if a conversion has moved the hold to another grant meanwhile.
	for {
		grants, err := l.mayLast(d, end)
		if err != nil {
			return l.named("extend", err)
		}
		err = c.renewAll(ctx, grants, trust.LeaseFor(d))
		if last, ended := l.extended(grants, end, err); last {
			return l.named("extend", withOperation("extend", l.m.key(), ended))
		}
	}
}

// mayLast returns the grants on which l rests, or says why it cannot last until end, which was d away when Extend
// began.
func (l *Lease) mayLast(d time.Duration, end trust.Instant) ([]*grant, error) {
	c := l.m.client()
	c.lock()
	defer c.unlock()
	now := c.now()
	l.check(now)
	if err := l.ended(); err != nil {
		return nil, err
	}
	if last := l.maxHoldEnd(); end > last {
		return nil, fmt.Errorf("interlock: extend %q by %v: its MaxHold ends in %v", l.Name(), d,
			last.Since(now).Round(time.Millisecond))
	}
	return l.grants(), nil
}

// renewAll renews each of the grants for at least lease, one after the other. It does nothing on engines without
// leases.
func (c *Client) renewAll(ctx context.Context, grants []*grant, lease time.Duration) error {
	if !c.hasLeases() {
		return nil
	}
	for _, g := range grants {
		if err := c.renewNow(ctx, g, lease); err != nil {
			return err
		}
	}
	return nil
}

// extended decides what the renewals of grants mean. They count for nothing if a conversion came in between, because
// the hold rests on other grants then: last is false, and Extend begins again. Otherwise ended is the result. A fixed
// lease is moved to end if the hold still lives.
func (l *Lease) extended(grants []*grant, end trust.Instant, err error) (last bool, ended error) {
	c := l.m.client()
	c.lock()
	defer c.unlock()
	l.check(c.now())
	now := l.ended()
	switch {
	case now == nil && !slices.Equal(grants, l.grants()):
		return false, nil
	case err != nil:
		return true, err
	case now != nil:
		return true, now
	}
	if l.m.p.NoRenew && end > l.end {
		l.end = end
	}
	c.reschedule(l.g)
	if l.upgradePair != nil {
		l.upgradePair.end = l.end
		c.reschedule(l.upgradePair.g)
	}
	return true, nil
}
