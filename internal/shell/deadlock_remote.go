package shell

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

// Owners named by WithOwner that wait for each other, by one client or by several, as the engine lists them. Only such
// owners are the same for every client. A list is not a picture of one instant. So a cycle counts if two lists have it,
// with the same tokens and the same waits: between the two none of them moved. Every client that has a part in the
// cycle finds the same victim, and the client in which the victim waits ends its wait.
//
// A list costs the engine as much as it has keys, of whatever program. So a client first looks at the locks around its
// own waiters, and asks for a list only if one of them can be the victim (waitgraph.Suspect). What looks cannot
// exclude, because an owner may hold something in another process, the waiters of a line list for by turns, one each
// remoteMost.

const (
	// remoteFirst and remoteMost are the shortest and the longest pause between two searches; each that finds nothing
	// doubles it. Less a random part of up to a quarter, so that clients which were started together do not all ask at
	// once.
	RemoteFirst = time.Second
	RemoteMost  = 30 * time.Second
	// listTimeout bounds one search.
	listTimeout = 10 * time.Second
	// mostTurns bounds after how many searches a waiter lists although only what it has elsewhere is suspicious.
	mostTurns = 32
)

// remoteDetector is the state of that search. Guarded by Machine.Mu.
type remoteDetector struct {
	at    trust.Instant                         // when to ask next, at the earliest
	first time.Duration                         // the pause with which it began for the present waiters
	Pause time.Duration                         // until the next search; 0 if none is planned
	busy  bool                                  // the engine is being asked: one search at a time
	turn  int                                   // of the searches that remoteMost was between
	seen  waitgraph.Facts[waitgraph.ListedFact] // what the last list had
}

// look has the engine asked if it is time to, in a goroutine of its own. The caller holds Machine.Mu.
func (f *remoteDetector) look(c *Client, now trust.Instant, waiters *waiterSet) {
	first := waiters.remotePause()
	inspector, can := c.Driver.(driver.Inspector)
	_, blind := c.Machine.Traits.Lacking(driver.Waiters)
	switch {
	case first == 0:
		f.Pause, f.seen = 0, nil
		return
	case !can || blind || f.busy:
		return
	// A new suspicion. The wait began searchAfter ago, because that is when the first search runs.
	case f.Pause == 0 || first < f.first:
		f.first, f.Pause, f.at = first, first, now.Plus(first-SearchAfter)
		return
	case now < f.at:
		return
	}
	f.first, f.busy = first, true
	s := remoteSearch{c: c, inspector: inspector, waiting: waiters.namedOnes(), confirms: f.seen != nil, turn: -1}
	if f.Pause == RemoteMost {
		s.turn = f.turn
		f.turn++
	}
	c.Machine.Background.Go(func() { // ends when the engine has answered, after listTimeout, or with c.base
		ctx, cancel := context.WithTimeout(c.renewCtx, listTimeout)
		defer cancel()
		g, err := s.graph(ctx)
		c.Lock()
		defer c.unlockInside()
		f.busy = false
		f.TakeList(c, g, err)
	})
}

// remoteSearch is one search, prepared under Machine.Mu.
type remoteSearch struct {
	c         *Client
	inspector driver.Inspector
	waiting   []waitgraph.Waiting
	confirms  bool // the last search has found a cycle
	turn      int  // of this client; negative if none is due
}

// graph returns the graph of a list, or nil if looks have shown that none is needed. It blocks for as long as the
// engine takes.
func (s *remoteSearch) graph(ctx context.Context) (*waitgraph.ListGraph, error) {
	if !s.confirms {
		look := func(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
			return driver.Look(ctx, s.c.Driver, key)
		}
		found, err := waitgraph.Suspect(ctx, look, s.waiting)
		if err != nil || !found.Likely && !s.isTurn(found) {
			return nil, err
		}
	}
	return waitgraph.Listed(ctx, s.inspector, core.Names.Waits)
}

// isTurn reports whether this client is to list for all that stand in a line with its waiter.
func (s *remoteSearch) isTurn(found waitgraph.Suspicion) bool {
	turns := min(found.Of, mostTurns)
	return found.Possible && s.turn >= 0 && turns > 0 && s.turn%turns == found.Place%turns
}

// takeList processes what a search has found; g is nil if it asked for no list. The caller holds Machine.Mu.
func (f *remoteDetector) TakeList(c *Client, g *waitgraph.ListGraph, err error) {
	if f.Pause == 0 { // the waiters have gone while the engine was asked
		return
	}
	f.Pause = min(2*f.Pause, RemoteMost)
	if g == nil || err != nil {
		f.at, f.seen = c.Reading().Plus(spread(f.Pause)), nil
		return
	}
	found := g.Cycle()
	told := waitgraph.SeenTwice(&f.seen, g, found, waitgraph.ListedFactOf)
	if len(found) > 0 && !told {
		f.Pause = RemoteFirst // look again soon
	}
	f.at = c.Reading().Plus(spread(f.Pause))
	if !told {
		return
	}
	// By the engine's clock, and then by name: the same choice in every client.
	victim := slices.MaxFunc(found, func(a, b waitgraph.ListEdge) int {
		return cmp.Or(a.What.Since.Compare(b.What.Since), cmp.Compare(a.What.Owner, b.What.Owner))
	})
	for w := range c.Machine.LinesOfOne {
		if isListed(w, victim.What) {
			refuseWaiter(w, &deadlockError{key: victim.What.Key, cycle: describeRemote(found, victim)})
		}
	}
}

// isListed reports whether w is the wait that f describes. The caller holds Machine.Mu.
func isListed(w *core.Waiter, f waitgraph.ListedWait) bool {
	o, m := w.Hold.Owner, w.Hold.Lock
	return o.Named && o.ID == f.Owner && m.Key() == f.Key && !w.Request.Ask.Try &&
		w.Request.Ask.Mode != driver.Exclusive == f.Shared
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
