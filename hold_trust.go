package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The trust window: until when a hold may be believed without asking anybody.
//
// It starts before the request was sent, because the engine's own lease starts somewhere between sending and answering,
// and it ends earlier than the engine's lease by an allowance for clocks that run at different rates. All instants are
// on this process's monotonic clock; no clock of another machine is ever compared with it.

// driftAllowance is how much earlier than the engine we believe a lease to end: 1 % for clocks of different rates
// (quartz is a hundred times better, a badly throttled virtual machine is not), and 2 ms for the rounding of engines
// that count in milliseconds and for the time that noticing takes.
func driftAllowance(lease time.Duration) time.Duration {
	return lease/100 + 2*time.Millisecond
}

// trustEnd is the end of the window of a lease that may be counted from the instant from.
func trustEnd(from instant, lease time.Duration) instant {
	return from.plus(lease - driftAllowance(lease))
}

// leaseFor returns the lease to ask for so that its trust window, from the instant of asking, is at least d.
func leaseFor(d time.Duration) time.Duration {
	return d + d/50 + 3*time.Millisecond // more than d / (1 - 1 %) + 2 ms
}

// deadline is the end of the trust window of g, or never on engines whose holds last as long as the process. The
// caller holds Client.mu.
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

// remaining is how much of the trust window is left. The caller holds Client.mu.
func (g *grant) remaining(now instant) time.Duration { return g.deadline().since(now) }

// confirm takes in that the engine renewed g for lease, by a request sent at sent. A confirmation never shortens the
// window (answers can overtake each other; see shorten for what does), and one that comes after the window has ended is
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

// suspensionWatch notices that this machine was suspended: the monotonic clock stands still then, and leases run out
// unseen. Guarded by Client.mu.
type suspensionWatch struct {
	suspended func() time.Duration // how long the machine has been suspended since it was started; never goes back
	known     time.Duration        // suspended at the last look that found something
	looked    instant
	all       []suspension
	count     int // of all suspensions
}

// suspension is one: it had happened by the monotonic instant noticed.
type suspension struct {
	noticed instant
	length  time.Duration
}

// shortestSuspension is what counts as one. Readings of the clocks err by less, except when this thread was held up
// between two of them, and suspensions take longer.
const shortestSuspension = 20 * time.Millisecond

// suspensionsKept bounds what a machine that sleeps every night remembers. Older suspensions are taken together, as if
// all had come when the last of them did: too early an end for who took a lock in between, never too late.
const suspensionsKept = 16

// newSuspensionWatch starts from the largest of several readings: one that was held up would be taken for a suspension
// later.
func newSuspensionWatch(suspended func() time.Duration) suspensionWatch {
	return suspensionWatch{suspended: suspended, known: max(suspended(), suspended(), suspended())}
}

// lookEvery is how long a look is good for, so that a busy client does not read clocks all the time. A suspension that
// falls between a look and a judgement this much later is as if it came after the judgement, and one that falls between
// a look and the sending of a request is counted as if it came after the sending: too early an end, never too late.
const lookEvery = time.Millisecond

// look notices a suspension since the last look. It is called before every instant from which a lease is counted and
// before every judgement of a window.
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

// since returns how long the machine was suspended since the instant from.
func (s *suspensionWatch) since(from instant) time.Duration {
	var total time.Duration
	for _, n := range s.all {
		if n.noticed > from {
			total += n.length
		}
	}
	return total
}

// trusted is the end of the trust in all that l rests on. The caller holds Client.mu.
func (l *Lease) trusted() instant {
	if l.upgradePair != nil {
		return min(l.g.deadline(), l.upgradePair.g.deadline())
	}
	return l.g.deadline()
}

// tooLate reports that the trust window of answer is over before anybody got it. The caller holds Client.mu.
func (g *grant) tooLate(answer driver.Grant, now instant) bool {
	c := g.m.c
	if c.traits.Lifetime != driver.Leases {
		return false
	}
	sent := c.at(answer.Sent)
	return now >= trustEnd(sent, answer.Lease).plus(-c.suspensions.since(sent))
}
