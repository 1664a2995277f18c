// A round from its questions to a hold. acquire.go starts it and takes the result; judge.go decides after each change.

package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// run blocks until the round has a majority, or cannot have one, or ctx ends.
func (rd *round) run(ctx context.Context) error {
	for {
		rd.c.mu.Lock()
		wait, do := rd.judge(time.Now())
		rd.c.mu.Unlock()
		switch {
		case do == nil:
		case errors.Is(do, errMajority):
			if done, err := rd.decide(ctx); done || err != nil {
				return err
			}
			if rd.c.d.base.Err() != nil { // nobody can be asked any more, so the votes would stay as they are
				return driver.ErrClosed
			}
			continue
		default:
			return do
		}
		timer := time.NewTimer(wait)
		select {
		case <-rd.news: // a vote has changed
		case <-timer.C: // nothing came, and that says something too
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-rd.c.d.base.Done():
			timer.Stop()
			return driver.ErrClosed
		}
		timer.Stop()
	}
}

// decide makes a hold of the votes. It reports false if more votes are needed: some may have run out or been lost since
// judge counted them.
func (rd *round) decide(ctx context.Context) (done bool, err error) {
	c := rd.c
	c.mu.Lock()
	votes, blocks := rd.granted(time.Now())
	// If another copy of the request was granted before, the tokens are those that it has.
	known := c.answer
	c.mu.Unlock()
	if len(votes) < c.d.quorum {
		return false, nil
	}
	tokens := common(blocks, c.d.quorum)
	// Not all have voted, so the largest token must be told to a majority before the grant counts (docs/rationale.md,
	// Redlock). While the set is changed the largest is told always: clients of the other set count fewer nodes, or
	// others.
	if len(votes) < len(rd.votes) || c.d.joint {
		tokens = largest(blocks)
		if known.Nonce == rd.id {
			tokens = blockOf(known.Token, known.Tokens)
		}
		votes, err = rd.confirm(ctx, tokens)
		if err != nil || len(votes) < c.d.quorum {
			return false, err
		}
	}
	// Counted from the confirmed votes, which began later, so the window is that of the confirmation then.
	sent, lease := window(votes, c.d.quorum)
	if left(sent, lease) <= 0 {
		return false, errSlow
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := driver.Grant{Token: tokens.first, Tokens: tokens.tokens(), Nonce: rd.id, Sent: sent, Lease: lease}
	// A copy was granted meanwhile: one hold has one token.
	if c.answer.Nonce == rd.id {
		g.Token, g.Tokens = c.answer.Token, c.answer.Tokens
	}
	c.answer = g
	return true, nil
}

// granted returns the votes that still last, and the tokens that each node has minted. The caller holds claim.mu.
func (rd *round) granted(now time.Time) (votes []driver.Grant, blocks []block) {
	blocks = make([]block, len(rd.votes))
	for i := range rd.votes {
		if v := &rd.votes[i]; v.state == granted && v.ends().After(now) {
			votes = append(votes, v.grant)
			blocks[i] = blockOf(v.grant.Token, v.grant.Tokens)
		}
	}
	return votes, blocks
}
