package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The trust window: until when a hold counts without asking anybody. It follows hold_grant.go; renew.go moves it on and
// hold_expire.go acts on its end.
//
// The window starts before the request was sent, because the engine's own lease starts somewhere between sending and
// answering. It ends earlier than the engine's lease by an allowance for clocks that run at different rates. All
// instants are on this process's monotonic clock; no clock of another machine is ever compared with it. docs/adr/0005
// has the decision.

// driftAllowance is how much earlier than the engine this process takes a lease to end. It is 1 % for clocks of
// different rates, plus 2 ms for engines that count in milliseconds and for the time that noticing takes. Quartz is a
// hundred times better than 1 %; a badly throttled virtual machine is not. For a lease of 30 s the allowance is 302 ms.
func driftAllowance(lease time.Duration) time.Duration {
	return lease/100 + 2*time.Millisecond
}

// trustEnd returns the end of the window of a lease that may be counted from the instant from.
func trustEnd(from instant, lease time.Duration) instant {
	return from.plus(lease - driftAllowance(lease))
}

// leaseFor returns the lease to ask for so that its trust window is at least d long: the inverse of trustEnd, rounded
// up.
func leaseFor(d time.Duration) time.Duration {
	return d + d/50 + 3*time.Millisecond // more than d / (1 - 1 %) + 2 ms
}

// deadline returns the end of the trust window of g, or never on engines whose holds last as long as the process. A
// suspension within the window brings the end nearer by its length, because the engine's clock ran on. On engines with
// sessions the window is counted from the session's last confirmed sign of life. The caller holds Client.mu.
func (g *grant) deadline() instant {
	c := g.m.c
	switch c.traits.Lifetime {
	case driver.Process:
		return never
	case driver.Sessions:
		from := c.at(g.session().Confirmed())
		return trustEnd(from, g.lease).plus(-c.suspensions.since(from))
	default:
		return trustEnd(g.sent, g.lease).plus(-c.suspensions.since(g.sent))
	}
}

// remaining returns how much of the trust window is left; it is negative after its end. The caller holds Client.mu.
func (g *grant) remaining(now instant) time.Duration { return g.deadline().since(now) }

// confirm records that the engine renewed g for lease, by a request sent at sent. A confirmation never shortens the
// window, because answers can overtake each other; shorten is what does. A confirmation after the end of the window is
// worth nothing: the caller has checked that g is not lost. The caller holds Client.mu.
func (g *grant) confirm(sent instant, lease time.Duration) {
	g.hasSucceeded()
	if g.outdated(sent) {
		return
	}
	g.renewed = max(g.renewed, sent)
	if sent.plus(lease) > g.sent.plus(g.lease) {
		g.sent, g.lease = sent, lease
	}
}

// suspensionWatch notices that this machine was suspended. The monotonic clock stands still then, so leases run out
// unseen. Guarded by Client.mu.
type suspensionWatch struct {
	suspended func() time.Duration // total time suspended since the machine was started; it never goes back
	known     time.Duration        // the value of suspended at the last look that found something
	looked    instant              // when it looked last; see lookEvery
	all       []suspension         // the oldest first; at most suspensionsKept
	count     int                  // of all suspensions, also those taken together; the scheduler compares it
}

// suspension is one stop of the machine. It had happened by the monotonic instant noticed.
type suspension struct {
	noticed instant
	length  time.Duration
}

// shortestSuspension is the least difference between two looks that counts as a suspension. Readings of the clocks
// differ by less, unless the thread was held up between two of them; suspensions take longer.
const shortestSuspension = 20 * time.Millisecond

// suspensionsKept bounds what a machine that sleeps every night remembers. Older suspensions are merged, as if all had
// come when the last of them did. A hold that was taken in between then ends too early, never too late.
const suspensionsKept = 16

// newSuspensionWatch starts from the largest of several readings. A reading that was held up is too small, and the next
// correct one would look like a suspension.
func newSuspensionWatch(suspended func() time.Duration) suspensionWatch {
	return suspensionWatch{suspended: suspended, known: max(suspended(), suspended(), suspended())}
}

// lookEvery is how long a look is good for, so that a busy client does not read two clocks for every lock. A suspension
// between a look and a judgement within that time is noticed at the next judgement. One between a look and the sending
// of a request is counted as if it came after the sending. So the end may be too early, and never too late.
const lookEvery = time.Millisecond

// look notices a suspension since the last look. It is called before every instant from which a lease is counted, and
// before every judgement of a window: see Client.now.
func (s *suspensionWatch) look(now instant) {
	if now.since(s.looked) < lookEvery {
		return
	}
	s.looked = now
	total := s.suspended()
	if total < s.known+shortestSuspension {
		return
	}
	s.all = append(s.all, suspension{noticed: now, length: total - s.known})
	if len(s.all) > suspensionsKept {
		s.all[1].length += s.all[0].length
		s.all = s.all[1:]
	}
	s.known = total
	s.count++
}

// since returns how long the machine was suspended after the instant from.
func (s *suspensionWatch) since(from instant) time.Duration {
	var total time.Duration
	for _, n := range s.all {
		if n.noticed > from {
			total += n.length
		}
	}
	return total
}

// trusted returns the end of the trust in all that l rests on: an upgraded hold rests on two grants, and ends with the
// first. The caller holds Client.mu.
func (l *Lease) trusted() instant {
	if l.upgradePair != nil {
		return min(l.g.deadline(), l.upgradePair.g.deadline())
	}
	return l.g.deadline()
}

// tooLate reports whether the trust window of answer is over before anybody got the hold. On engines without leases the
// driver reports a hold that has ended. The caller holds Client.mu.
func (g *grant) tooLate(answer driver.Grant, now instant) bool {
	c := g.m.c
	if !c.hasLeases() {
		return false
	}
	sent := c.at(answer.Sent)
	return now >= trustEnd(sent, answer.Lease).plus(-c.suspensions.since(sent))
}
