// From an answer or a push to a driver.Grant, and when a push may be trusted without a round trip. acquire.go asks; the
// rules are 6 and 9 of the hand-off (see the package documentation, Guarantees).

package redislock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// grant is the grant that the server answered. Its lease counts from before the request was sent, on our clock.
func (a *attempt) grant() driver.Grant {
	return driver.Grant{
		Token: a.answer.token, Tokens: a.answer.tokens, Nonce: a.answer.nonce,
		Sent: a.sent, Lease: a.r.Lease,
	}
}

// trusts reports whether the instant of p can be told on our clock. It can by the difference between two instants of
// the same server, if both came over the same connection. If the instant is before our own request, or after the push
// arrived, the server's clock was set meanwhile, and the difference says nothing.
//
// With Replicas a push is only a hint: nobody knows whether the replicas have it. With a LockDelay too: a push that
// ends unclaimed goes back to the queue without a delay, so nobody may have acted on it.
func (a *attempt) trusts(p *push) bool {
	return a.d.opts.Replicas == 0 && a.r.LockDelay == 0 && p.grant.link != 0 && p.grant.link == a.answer.link &&
		p.grant.now >= a.answer.now && !a.granted(p).After(p.received)
}

// granted is the instant of the grant p on our clock, or a little before: the request reached the server after a.sent.
func (a *attempt) granted(p *push) time.Time {
	return a.sent.Add(time.Duration(p.grant.now-a.answer.now) * time.Microsecond)
}

// pushed is the grant of p. It has a short lease, counted from when the server granted it; the renewal that follows
// claims the full one (docs/rationale.md, Pushed grants). One percent and 2 ms are taken off for clocks of different
// rates and for the server's rounding to milliseconds.
func (a *attempt) pushed(p *push) driver.Grant {
	elapsed := time.Duration(p.grant.now-a.answer.now) * time.Microsecond
	return driver.Grant{
		Token: p.grant.token, Tokens: p.grant.tokens, Nonce: p.grant.nonce,
		Sent: a.sent.Add(elapsed - elapsed/100 - 2*time.Millisecond), Lease: p.grant.lease,
	}
}
