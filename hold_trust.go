package interlock

import (
	"github.com/interlock-go/interlock/internal/grants"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Until when a grant is trusted: package grants judges, by the client's clock.

// deadline returns the end of the trust window of g. The caller holds Client.mu.
func (g *grant) deadline() trust.Instant { return g.Deadline(&g.m.c.env) }

// remaining returns how much of it is left. The caller holds Client.mu.
func (g *grant) remaining(now trust.Instant) time.Duration { return g.Remaining(&g.m.c.env, now) }

// trusted returns the end of the trust in all that l rests on: an upgraded hold rests on two grants, and ends with the
// first. The caller holds Client.mu.
func (l *Lease) trusted() trust.Instant {
	if l.upgradePair != nil {
		return min(l.g.deadline(), l.upgradePair.g.deadline())
	}
	return l.g.deadline()
}

// tooLate reports whether answer is over before anybody got the hold. The caller holds Client.mu.
func (c *core) tooLate(answer driver.Grant, now trust.Instant) bool {
	return grants.TooLate(&c.env, answer, now)
}
