package shell

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// mayLast returns the grants on which l rests, or says why it cannot last until end, which was d away when Extend
// began.
func MayLast(l *core.Hold, d time.Duration, end trust.Instant) ([]*core.EngineHold, error) {
	c := ClientOfLock(l.Lock)
	c.Lock()
	defer c.Unlock()
	now := c.Machine.Now()
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
func (c *Client) RenewAll(ctx context.Context, grants []*core.EngineHold, lease time.Duration) error {
	if !c.Machine.HasLeases() {
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
func ExtendedHold(l *core.Hold, grants []*core.EngineHold, end trust.Instant, err error) (last bool, ended error) {
	c := ClientOfLock(l.Lock)
	c.Lock()
	defer c.Unlock()
	l.Check(c.Machine.Now())
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
	c.Machine.Reschedule(l.Engine)
	if l.UpgradePair != nil {
		l.UpgradePair.End = l.End
		c.Machine.Reschedule(l.UpgradePair.Engine)
	}
	return true, nil
}
