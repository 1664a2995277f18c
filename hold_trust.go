package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// The trust window: until when a hold counts without asking anybody. It follows hold_grant.go; renew.go moves it on and
// hold_expire.go acts on its end.
//
// The window starts before the request was sent, because the engine's own lease starts somewhere between sending and
// answering. It ends earlier than the engine's lease by an allowance for clocks that run at different rates. All
// instants are on this process's monotonic clock; no clock of another machine is ever compared with it. docs/adr/0005
// has the decision.

// deadline returns the end of the trust window of g, or never on engines whose holds last as long as the process. A
// suspension within the window brings the end nearer by its length, because the engine's clock ran on. On engines with
// sessions the window is counted from the session's last confirmed sign of life. The caller holds Client.mu.
func (g *grant) deadline() trust.Instant {
	c := g.m.c
	switch c.traits.Lifetime {
	case driver.Process:
		return trust.Never
	case driver.Sessions:
		from := c.at(g.session().Confirmed())
		return trust.Window{Sent: from, Lease: g.lease}.EndWith(&c.suspensions)
	default:
		return g.window().EndWith(&c.suspensions)
	}
}

// window returns the lease that the engine has confirmed last, and from when it counts. The caller holds Client.mu.
func (g *grant) window() trust.Window { return trust.Window{Sent: g.sent, Lease: g.lease} }

func (g *grant) setWindow(w trust.Window) { g.sent, g.lease = w.Sent, w.Lease }

// remaining returns how much of the trust window is left; it is negative after its end. The caller holds Client.mu.
func (g *grant) remaining(now trust.Instant) time.Duration { return g.deadline().Since(now) }

// confirm records that the engine renewed g for lease, by a request sent at sent. A confirmation never shortens the
// window, because answers can overtake each other; shorten is what does. A confirmation after the end of the window is
// worth nothing: the caller has checked that g is not lost. The caller holds Client.mu.
func (g *grant) confirm(sent trust.Instant, lease time.Duration) {
	g.hasSucceeded()
	if g.outdated(sent) {
		return
	}
	g.renewed = max(g.renewed, sent)
	g.setWindow(g.window().Longer(trust.Window{Sent: sent, Lease: lease}))
}

// trusted returns the end of the trust in all that l rests on: an upgraded hold rests on two grants, and ends with the
// first. The caller holds Client.mu.
func (l *Lease) trusted() trust.Instant {
	if l.upgradePair != nil {
		return min(l.g.deadline(), l.upgradePair.g.deadline())
	}
	return l.g.deadline()
}

// tooLate reports whether the trust window of answer is over before anybody got the hold. On engines without leases the
// driver reports a hold that has ended. The caller holds Client.mu.
func (g *grant) tooLate(answer driver.Grant, now trust.Instant) bool {
	c := g.m.c
	if !c.hasLeases() {
		return false
	}
	return now >= trust.Window{Sent: c.at(answer.Sent), Lease: answer.Lease}.EndWith(&c.suspensions)
}
