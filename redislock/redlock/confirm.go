// The write-back of a token when not all nodes have voted (docs/rationale.md, Redlock). round.go decides that it is
// needed; confirm.lua on each node refuses it without the vote.

package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

// confirm tells the nodes that have voted which tokens count, so that their next ones are larger. It returns the votes
// of the nodes that have confirmed, as soon as they are a majority. A node that has lost the hold meanwhile does not
// confirm: it may have voted for another request with a smaller token. A confirmed vote lasts for the whole lease,
// counted from here.
func (rd *round) confirm(ctx context.Context, tokens block) ([]driver.Grant, error) {
	c := rd.c
	// Bounded by the driver and not by ctx, so that the confirmations under way go on when this returns early.
	bounded, cancel := context.WithTimeout(c.d.base, c.d.opts.NodeTimeout)
	said := make(chan *driver.Grant, len(rd.votes))
	var all sync.WaitGroup
	told := 0
	c.mu.Lock()
	for i := range rd.votes {
		if rd.votes[i].state != granted {
			continue
		}
		told++
		all.Add(1)
		started := c.d.spawn(func() { // ends with bounded
			defer all.Done()
			said <- rd.confirmAt(bounded, i, tokens)
		})
		if !started {
			all.Done()
			said <- nil
		}
	}
	c.mu.Unlock()
	c.d.spawn(func() { // ends with those
		all.Wait()
		cancel()
	})
	var votes []driver.Grant
	// The slower nodes are not waited for; their confirmations go on.
	for ; told > 0 && len(votes) < c.d.quorum; told-- {
		select {
		case g := <-said:
			if g != nil {
				votes = append(votes, *g)
			}
		case <-ctx.Done():
			return votes, ctx.Err()
		}
	}
	return votes, nil
}

// confirmAt is confirm for one node. It returns nil if the vote is gone, or if that is not known.
func (rd *round) confirmAt(ctx context.Context, i int, tokens block) *driver.Grant {
	c := rd.c
	sent := time.Now() // before the request, so not later than the server's own instant
	err := c.d.nodes[i].confirm(ctx, &redislock.Confirmation{
		Key: c.r.Key, ID: rd.id, Lease: c.r.Lease, Token: tokens.first, Tokens: tokens.tokens(),
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	v := &rd.votes[i]
	if err != nil {
		// It was granted and is not any more, as far as is known: it must not be counted again.
		if v.state == granted {
			v.state, _ = stateOf(err)
			v.err = err
			rd.changed()
		}
		return nil
	}
	v.grant = driver.Grant{Token: tokens.first, Tokens: tokens.tokens(), Nonce: rd.id, Sent: sent, Lease: c.r.Lease}
	g := v.grant
	return &g
}
