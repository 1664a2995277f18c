package redislock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// grant is what the server answered itself.
func (a *attempt) grant() driver.Grant {
	return driver.Grant{
		Token: a.answer.token, Tokens: a.answer.tokens, Nonce: a.answer.nonce,
		Sent: a.sent, Lease: a.r.Lease,
	}
}

// trusts reports whether the instant of p can be told on our clock: by the difference between two instants of the same
// server, which came over the same connection. The server's clock may have been set meanwhile: if the instant is before
// our own request, or after the push arrived, it has been. With Replicas a push is only a hint, and with a LockDelay
// too: a push that ends unclaimed goes back to the queue without a delay, so nobody may have acted on it.
func (a *attempt) trusts(p *push) bool {
	return a.d.opts.Replicas == 0 && a.r.LockDelay == 0 && p.grant.link != 0 && p.grant.link == a.answer.link &&
		p.grant.now >= a.answer.now && !a.granted(p).After(p.received)
}

// granted is when p was granted, on our clock, or a little before.
func (a *attempt) granted(p *push) time.Time {
	return a.sent.Add(time.Duration(p.grant.now-a.answer.now) * time.Microsecond)
}

// pushed is the grant of p: of a short lease, counted from when the server granted it. The renewal that follows at once
// claims the full one.
func (a *attempt) pushed(p *push) driver.Grant {
	elapsed := time.Duration(p.grant.now-a.answer.now) * time.Microsecond
	return driver.Grant{
		Token: p.grant.token, Tokens: p.grant.tokens, Nonce: p.grant.nonce,
		Sent: a.sent.Add(elapsed - elapsed/100 - 2*time.Millisecond), Lease: p.grant.lease,
	}
}
