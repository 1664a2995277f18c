package interlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

// Owners named by WithOwner that wait for each other, by one client or by several, as the engine lists them. Only such
// owners are the same for every client. A list is not a picture of one instant. So a cycle counts if two lists have it,
// with the same tokens and the same waits: between the two none of them moved. Every client that has a part in the
// cycle finds the same victim, and the client in which the victim waits ends its wait. deadlock_remote_list.go makes
// the graph of a list.

const (
	// remoteFirst and remoteMost are the shortest and the longest pause between two lists; each list that finds nothing
	// doubles it. A list costs the engine more the more locks it has.
	remoteFirst = time.Second
	remoteMost  = 30 * time.Second
	// listTimeout bounds one list.
	listTimeout = 10 * time.Second
)

// remoteDetector is the state of that search. Guarded by Client.mu.
type remoteDetector struct {
	at    trust.Instant                         // when to ask next, at the earliest
	first time.Duration                         // the pause with which it began for the present waiters
	pause time.Duration                         // until the next list; 0 if none is planned
	busy  bool                                  // the engine is being asked: one list at a time
	seen  waitgraph.Facts[waitgraph.ListedFact] // what the last list had
}

// look has the engine asked if it is time to, in a goroutine of its own. first is after how long a wait, and 0 if no
// named owner waits. The caller holds Client.mu.
func (f *remoteDetector) look(c *Client, now trust.Instant, first time.Duration) {
	inspector, can := c.d.(driver.Inspector)
	_, blind := c.traits.Lacking(driver.Waiters)
	switch {
	case first == 0:
		f.pause, f.seen = 0, nil
		return
	case !can || blind || f.busy:
		return
	// A new suspicion. The wait began searchAfter ago, because that is when the first search runs.
	case f.pause == 0 || first < f.first:
		f.first, f.pause, f.at = first, first, now.Plus(first-searchAfter)
		return
	case now < f.at:
		return
	}
	f.first, f.busy = first, true
	c.background.Go(func() { // ends when the engine has answered, after listTimeout, or with c.base
		ctx, cancel := context.WithTimeout(c.base, listTimeout)
		defer cancel()
		g, err := waitgraph.Listed(ctx, inspector, names.waits)
		c.lock()
		defer c.unlockInside()
		f.busy = false
		f.takeList(c, g, err)
	})
}

// takeList processes what a list had. The caller holds Client.mu.
func (f *remoteDetector) takeList(c *Client, g *waitgraph.ListGraph, err error) {
	f.pause = min(2*f.pause, remoteMost)
	if err != nil {
		f.at, f.seen = c.reading().Plus(f.pause), nil
		return
	}
	found := g.Cycle()
	told := waitgraph.SeenTwice(&f.seen, g, found, waitgraph.ListedFactOf)
	if len(found) > 0 && !told {
		f.pause = remoteFirst // look again soon
	}
	f.at = c.reading().Plus(f.pause)
	if !told {
		return
	}
	// By the engine's clock, and then by name: the same choice in every client.
	victim := slices.MaxFunc(found, func(a, b waitgraph.ListEdge) int {
		return cmp.Or(a.What.Since.Compare(b.What.Since), cmp.Compare(a.What.Owner, b.What.Owner))
	})
	for w := range c.alone {
		if w.isListed(victim.What) {
			w.refuse(&deadlockError{key: victim.What.Key, cycle: describeRemote(found, victim)})
		}
	}
}

// isListed reports whether w is the wait that f describes. The caller holds Client.mu.
func (w *waiter) isListed(f waitgraph.ListedWait) bool {
	o, m := w.lease.owner, w.lease.m
	return o.named && o.id == f.Owner && m.key() == f.Key && !w.own.r.Try &&
		w.own.r.Mode != driver.Exclusive == f.Shared
}

// describeRemote tells the cycle in words, from the victim on.
func describeRemote(found []waitgraph.ListEdge, victim waitgraph.ListEdge) string {
	return waitgraph.Describe(found, victim.Wait, func(s waitgraph.ListEdge) (string, string) {
		how := ", held by owner "
		if s.Next.What.Ahead {
			how = ", behind owner "
		}
		return s.What.Owner, waitsFor(s.What.Key, s.What.Shared) + how + s.Next.What.Owner
	})
}
