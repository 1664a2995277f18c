package shell

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

// Owners of this client that wait for each other, each for a mutex, a read, a write or permits that the next one has in
// its way. The scheduler has the search run only while somebody waits who holds something, or may. What it finds must
// be there twice, half a second apart, with the same waits and the same acquisitions: then all of them stood still at
// every instant between the two. So a search need not see one instant. It runs in a goroutine of its own, and holds
// Machine.Mu for a few waits at a time. deadlock_local.go makes the graph, package waitgraph searches it, and
// deadlock_remote.go does the same over several clients. docs/adr/0023 has the decision.
//
// An owner counts as stuck only if all of its waits are hopeless, whatever everybody does who is not stuck; see
// waitGraph. If one of its waits can end well, that goroutine may give back what the others wait for. What else an
// owner does is not known. An owner whose goroutines share it looks like one that only waits, although one of them
// works and would give the lock back in time. Pools of workers that take permits are like that. So permits count as
// stuck only if their owner has them by one hold and waits once.
//
// What is waited for behind others, or held by another client, is not looked at here: owners that wait so count as
// free.

const (
	// searchAfter is how long a wait lasts before the first search, and the pause between two. Nearly all waits are
	// over by then.
	SearchAfter = 500 * time.Millisecond
)

// deadlockDetector is the state of the search. Guarded by Machine.Mu.
type deadlockDetector struct {
	At     trust.Instant              // when to search next; never if nobody is suspicious
	busy   bool                       // a search is under way
	seen   waitgraph.Facts[localFact] // what the last search found; of the search
	Remote remoteDetector
}

// localGraph is the waitGraph of what this client knows, and localEdge an edge of it.
type (
	localGraph = waitgraph.Graph[*core.Waiter, localHold]
	localEdge  = waitgraph.Edge[*core.Waiter, localHold]
)

// localHold is what an owner has of a lock for which others of this client wait.
type localHold struct {
	owner *core.Owner
	g     *core.EngineHold
	pass  int32
	mode  driver.Mode
}

// localFact is a wait and what is in its way. It is comparable, and the same as long as neither has moved: pass changes
// when the grant goes to another owner.
type localFact struct {
	w    *core.Waiter
	g    *core.EngineHold
	pass int32
}

// localFactOf returns the fact that o is in the way of w.
func localFactOf(w *waitgraph.Wait[*core.Waiter, localHold], o *waitgraph.Obstacle[localHold]) localFact {
	return localFact{w.What, o.What.g, o.What.pass}
}

// suspectDeadlock has the search run soon if o may be part of a deadlock. It is called when o begins to wait, and when
// it gets something while it waits. An owner that holds nothing and waits for nothing else is in nobody's way; a named
// one may hold something in another process. The caller holds Machine.Mu.
func (c *Client) suspectDeadlock(o *core.Owner) {
	if c.Deadlocks.At < trust.Never || !o.Named && o.Waits.Load() < 2 && !o.HoldsAny() {
		return
	}
	c.Deadlocks.At = c.Reading().Plus(SearchAfter)
	c.Machine.WakeBy(c.Deadlocks.At)
}

// look has the search run if it is time to, and returns when to look next. The caller holds Machine.Mu.
func (k *deadlockDetector) look(c *Client, now trust.Instant) trust.Instant {
	switch {
	case k.busy: // the end of the search says when
		return trust.Never
	case now < k.At:
		return k.At
	}
	k.At, k.busy = trust.Never, true
	c.Machine.Background.Go(func() { k.search(c) }) // ends when all waits have been looked at
	return trust.Never
}

// search looks once at all waiters. It ends the wait of at most one owner, the last to come: it has most likely
// done the least under its locks.
func (k *deadlockDetector) search(c *Client) {
	waiters := c.WaiterSet()
	g := c.WaitGraph(waiters)
	g.Settle()
	found := g.Cycle()
	told := waitgraph.SeenTwice(&k.seen, g, found, localFactOf)
	c.Lock()
	defer c.unlockInside()
	now := c.Machine.Now()
	k.busy = false
	if waiters.Suspicious {
		k.At = min(k.At, now.Plus(SearchAfter))
	}
	k.Remote.look(c, now, waiters)
	c.Machine.WakeBy(k.At)
	// What has moved since it was looked at needs no help.
	if !told || slices.ContainsFunc(found, HasMoved) {
		return
	}
	victim := slices.MaxFunc(found, func(a, b localEdge) int { return cmp.Compare(a.What.Start, b.What.Start) })
	refuseWaiter(victim.What, &deadlockError{key: victim.What.Hold.Lock.Key(), cycle: describeCycle(found, victim)})
}

// hasMoved reports whether a wait of a cycle is over, or what was in its way. The caller holds Machine.Mu.
func HasMoved(s localEdge) bool {
	by := s.Next.What
	return s.What.Answered || by.g.Phase == grants.Gone || by.g.Pass != by.pass
}

// describeCycle tells the cycle in words, from the victim on.
func describeCycle(found []localEdge, victim localEdge) string {
	return waitgraph.Describe(found, victim.Wait, func(s localEdge) (string, string) {
		m := s.What.Hold.Lock
		return s.What.Hold.Owner.ID, waitsFor(m.Key(), m.Terms.Share.Mode != driver.Exclusive) + ", held by owner " +
			s.Next.What.owner.ID
	})
}

// refuseWaiter ends the wait of w with err, and undoes its request if it has one of its own. The caller holds Machine.Mu.
func refuseWaiter(w *core.Waiter, err error) {
	if w.Request != nil {
		w.Withdraw()
		w.Answer(err)
		return
	}
	w.Answer(err)
	w.Line.Remove(w)
}

// waitsFor says in words what somebody waits for.
func waitsFor(key driver.Key, shared bool) string {
	switch {
	case key.Kind == driver.KindSemaphore:
		return fmt.Sprintf("waits for permits of %q", key.Name)
	case key.Kind == driver.KindRWMutex && shared:
		return fmt.Sprintf("waits to read %q", key.Name)
	case key.Kind == driver.KindRWMutex:
		return fmt.Sprintf("waits to write %q", key.Name)
	default:
		return fmt.Sprintf("waits for %q", key.Name)
	}
}

// deadlockError is the error of the victim: it says who waits for whom.
type deadlockError struct {
	key   driver.Key
	cycle string
}

// Error gives the lock and the cycle.
func (e *deadlockError) Error() string {
	return fmt.Sprintf("interlock: lock %q: %s: %s", e.key.Name, driver.ErrDeadlock, e.cycle)
}

// Is matches ErrDeadlock.
func (e *deadlockError) Is(t error) bool { return t == driver.ErrDeadlock }
