package interlock

import (
	"context"
	"fmt"
	"time"
)

// Extend makes sure that the hold lasts at least d from now: that Deadline is no earlier, once it has returned nil. On a
// hold with NoRenew this moves its end; beyond the MaxHold nothing goes. It costs one round trip on engines with leases,
// and none elsewhere: there a renewed hold lasts as long as its session or process anyway. An error that matches
// ErrUnavailable changes nothing that was known.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > longest {
		return fmt.Errorf("interlock: extend %q: the duration %v must be more than 0 and at most %v", l.Name(), d, longest)
	}
	c := l.m.c
	c.lock()
	now := c.now()
	l.check(now)
	ended, end, grants := l.ended(), now.plus(d), l.grants()
	c.unlock()
	if ended != nil {
		return ended
	}
	if last := l.last(); end > last {
		return fmt.Errorf("interlock: extend %q by %v: its MaxHold ends in %v", l.Name(), d, last.since(now).Round(time.Millisecond))
	}
	if c.renewer != nil {
		for _, g := range grants {
			if err := c.renewNow(ctx, g, leaseFor(d)); err != nil {
				return err
			}
		}
	}
	return l.moveEnd(end)
}

// moveEnd lengthens a fixed lease to end, if the hold still lives.
func (l *Lease) moveEnd(end instant) error {
	c := l.m.c
	c.lock()
	defer c.unlock()
	l.check(c.now())
	if err := l.ended(); err != nil {
		return err
	}
	if l.m.p.noRenew && end > l.end {
		l.end = end
	}
	c.reschedule(l.g)
	if l.pair != nil {
		l.pair.end = l.end
		c.reschedule(l.pair.g)
	}
	return nil
}
