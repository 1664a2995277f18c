package redlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// abandon gives back everything that a round may have left, and waits for the nodes that answer soon.
func (rd *round) abandon(ctx context.Context) {
	c := rd.c
	c.mu.Lock()
	rd.stop()
	left := make(chan struct{}, len(rd.votes))
	waits := 0
	for i := range rd.votes {
		if v := &rd.votes[i]; v.state == refused || v.state == absent {
			continue // it was not queued, and nothing was taken
		}
		late := c.d.nodes[i].late.Load()
		done := rd.undo(i)
		if late {
			continue
		}
		waits++
		if !c.d.spawn(func() { <-done; left <- struct{}{} }) { // ends with undo
			left <- struct{}{}
		}
	}
	c.mu.Unlock()
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

// undo frees one node of the round, in the background, and lets the vote's done say when it is.
// The caller holds claim.mu.
func (rd *round) undo(i int) (undone chan struct{}) {
	c, v := rd.c, &rd.votes[i]
	before := v.done
	undone = make(chan struct{})
	until := time.Now().Add(max(c.r.Lease, shortestHorizon))
	give := &driver.Release{Key: c.r.Key, ID: rd.id, Undo: true, Horizon: c.r.Lease}
	started := c.d.spawn(func() { // ends when the node has understood, or at until
		defer close(undone)
		<-before
		c.mu.Lock()
		unasked := v.state == absent
		c.mu.Unlock()
		if unasked {
			return
		}
		_ = c.d.insist(i, give, until) // what it could not tell the node, the lease ends
	})
	if !started {
		close(undone)
	}
	v.done = undone
	return undone
}
