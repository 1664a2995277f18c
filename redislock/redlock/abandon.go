// Giving a round back that did not become a hold. acquire.go calls it between rounds; release.go has the release of a
// claim, which ends all of its rounds.

package redlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// abandon gives back everything that a round may have left, and waits for the nodes that answer soon. It waits, because
// the next round of this request would find its own old votes in the way; not longer than twice the grace, because a
// slow node would delay everybody. What is left goes on in the background.
func (rd *round) abandon(ctx context.Context) {
	c := rd.c
	c.mu.Lock()
	rd.stop()
	left := make(chan struct{}, len(rd.votes))
	waits := 0
	for i := range rd.votes {
		// It was not queued there, and nothing was taken.
		if v := &rd.votes[i]; v.state == refused || v.state == absent {
			continue // it was not queued, and nothing was taken
		}
		late := c.d.nodes[i].late.Load()
		done := rd.undo(i)
		// A node that is late as a rule is told but not waited for.
		if late {
			continue
		}
		waits++
		if !c.d.spawn(func() { <-done; left <- struct{}{} }) { // ends with undo
			left <- struct{}{}
		}
	}
	c.mu.Unlock()
	// Without c.mu from here on: the answers need it.
	timer := time.NewTimer(2 * c.d.grace())
	defer timer.Stop()
	for ; waits > 0; waits-- {
		select {
		case <-left:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// undo frees one node of the round in the background, and puts a channel that is closed at its end into the vote's
// done. So whatever is asked of that node later waits for the undo. The caller holds claim.mu.
func (rd *round) undo(i int) (undone chan struct{}) {
	c, v := rd.c, &rd.votes[i]
	before := v.done
	undone = make(chan struct{})
	until := time.Now().Add(max(c.r.Lease, shortestHorizon))
	give := &driver.Release{Key: c.r.Key, ID: rd.id, Undo: true, Horizon: c.r.Lease}
	started := c.d.spawn(func() { // ends when the node has understood, or at until
		defer close(undone)
		// After the question, or the undo could overtake what it undoes.
		<-before
		c.mu.Lock()
		unasked := v.state == absent
		c.mu.Unlock()
		if unasked {
			return
		}
		_ = c.d.insist(i, give, until) // what the node cannot be told is ended by the lease
	})
	if !started {
		close(undone)
	}
	v.done = undone
	return undone
}
