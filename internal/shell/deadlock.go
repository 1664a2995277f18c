package shell

import (
	"cmp"
	"context"
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
// Machine.Mu for a few waits at a time. WaitGraph makes the graph, package waitgraph searches it, and
// remoteDetector does the same over several clients. docs/rationale.md, Deadlocks, has the decision.
//
// An owner counts as stuck only if all of its waits are hopeless, whatever everybody does who is not stuck; see
// WaitGraph. If one of its waits can end well, that goroutine may give back what the others wait for. What else an
// owner does is not known. An owner whose goroutines share it looks like one that only waits, although one of them
// works and would give the lock back in time. Pools of workers that take permits are like that. So permits count as
// stuck only if their owner has them by one hold and waits once.
//
// What is waited for behind others, or held by another client, is not looked at here: owners that wait so count as
// free.

const (
	// SearchAfter is how long a wait lasts before the first search, and the pause between two. Nearly all waits are
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

// localGraph is the WaitGraph of what this client knows, and localEdge an edge of it.
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
	c.WakeBy(c.Deadlocks.At)
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
	c.Background.Go(func() { k.search(c) }) // ends when all waits have been looked at
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
	now := c.Now()
	k.busy = false
	if waiters.Suspicious {
		k.At = min(k.At, now.Plus(SearchAfter))
	}
	k.Remote.look(c, now, waiters)
	c.WakeBy(k.At)
	// What has moved since it was looked at needs no help.
	if !told || slices.ContainsFunc(found, HasMoved) {
		return
	}
	victim := slices.MaxFunc(found, func(a, b localEdge) int { return cmp.Compare(a.What.Start, b.What.Start) })
	refuseWaiter(victim.What, &deadlockError{key: victim.What.Hold.Lock.Key(), cycle: describeCycle(found, victim)})
}

// HasMoved reports whether a wait of a cycle is over, or what was in its way. The caller holds Machine.Mu.
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

// refuseWaiter ends the wait of w with err, and undoes its request if it has one of its own. The caller holds
// Machine.Mu.
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

// The graph of what this client knows: its waiters, its grants and its owners (package waitgraph searches it).

// mostInTheWay bounds how many holds in the way of one wait are looked at. Otherwise a crowd of readers that waits for
// another such crowd would keep Machine.Mu for the product of both. An obstacle that is left out can only hide a
// deadlock, not invent one.
const mostInTheWay = 64

// WaiterSet is all waiting owners of a client.
type WaiterSet struct {
	Owners     map[*core.Owner]*WaitingOwner
	Suspicious bool // one of them holds something, has a name, or waits twice: a search may find something
	named      bool // one of them has a name
	holds      bool // one of them has a name and holds something in this process
}

// WaitingOwner is an owner who waits.
type WaitingOwner struct {
	o     *core.Owner
	node  int // its number in the graph
	waits []*core.Waiter
	free  bool // it may get on, as far as this client knows
}

// remotePause returns how long a wait lasts before the engine is asked who else waits; 0 means never. A named owner
// that holds nothing here may hold something in another process, but few do, so it waits longest.
func (all *WaiterSet) remotePause() time.Duration {
	switch {
	case all.holds:
		return RemoteFirst
	case all.named:
		return RemoteMost
	}
	return 0
}

// namedOnes returns the named owners that may be stuck, with the locks that they wait for and have in this process. Of
// very many owners or locks it returns one more than are looked at. The caller holds Machine.Mu.
func (all *WaiterSet) namedOnes() (ones []waitgraph.Waiting) {
	left := waitgraph.MostLooks + 1
	for o, p := range all.Owners {
		if !o.Named || p.free {
			continue
		}
		if len(ones) > waitgraph.MostOwners {
			break
		}
		w := waitgraph.Waiting{Owner: o.ID, Holds: keysOf(o, left)}
		left -= len(w.Holds)
		for _, wait := range p.waits {
			w.Waits = append(w.Waits, wait.Hold.Lock.Key())
		}
		ones = append(ones, w)
	}
	return ones
}

// keysOf returns the locks that o holds by any client, at most so many.
func keysOf(o *core.Owner, most int) (keys []driver.Key) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for l := range o.Holds.All() {
		if len(keys) == most {
			break
		}
		keys = append(keys, l.Lock.Key())
	}
	return keys
}

// WaiterSet returns all waiting owners. Only to copy the lines it takes Machine.Mu: an owner is missed, or taken for
// free, if it comes or goes meanwhile.
func (c *Client) WaiterSet() *WaiterSet {
	all := &WaiterSet{Owners: make(map[*core.Owner]*WaitingOwner)}
	lines, tries := c.allWaiters()
	for _, w := range lines {
		all.note(w)
	}
	for _, w := range tries { // a try ends by itself, so its owner is free
		all.note(w).free = true
	}
	for o, p := range all.Owners {
		n, holds := len(p.waits), o.HoldsAny()
		p.free = p.free || int(o.Waits.Load()) > n // it also waits by another client, or for a condition
		all.Suspicious = all.Suspicious || o.Named || n > 1 || holds
		all.named = all.named || o.Named
		all.holds = all.holds || o.Named && holds
	}
	return all
}

// allWaiters returns who waits, and apart from them who only tries.
func (c *Client) allWaiters() (lines, tries []*core.Waiter) {
	c.Lock()
	defer c.unlockInside()
	for _, q := range c.Lines {
		q.Waiters.Each(func(w *core.Waiter) { lines = append(lines, w) })
	}
	for w := range c.LinesOfOne {
		if w.Request.Ask.Try {
			tries = append(tries, w)
		} else {
			lines = append(lines, w)
		}
	}
	return lines, tries
}

// note adds a wait, and returns its owner.
func (all *WaiterSet) note(w *core.Waiter) *WaitingOwner {
	p := all.Owners[w.Hold.Owner]
	if p == nil {
		p = &WaitingOwner{o: w.Hold.Owner}
		all.Owners[p.o] = p
	}
	p.waits = append(p.waits, w)
	return p
}

// WaitGraph returns who of them waits for whom. Nodes are in the order of the owners' names and waits in the order in
// which they began, so that two searches number them alike. It takes Machine.Mu for AtOnce owners at a time.
func (c *Client) WaitGraph(all *WaiterSet) *localGraph {
	waiting := make([]*WaitingOwner, 0, len(all.Owners))
	shared := make(map[driver.Key][]waitgraph.Obstacle[localHold])
	for _, p := range all.Owners {
		waiting = append(waiting, p)
		for _, w := range p.waits {
			if w.Hold.Lock.Terms.Share.Direct {
				shared[w.Hold.Lock.Key()] = nil
			}
		}
	}
	slices.SortFunc(waiting, func(a, b *WaitingOwner) int { return cmp.Compare(a.o.ID, b.o.ID) })
	for n, p := range waiting {
		p.node = n
		slices.SortFunc(p.waits, func(a, b *core.Waiter) int { return cmp.Compare(a.Start, b.Start) })
	}
	if len(shared) > 0 {
		c.InParts(waiting, func(p *WaitingOwner) { c.sharedBy(p, shared) })
	}
	g := &localGraph{Free: make([]bool, len(waiting))}
	c.InParts(waiting, func(p *WaitingOwner) {
		for _, w := range p.waits {
			p.free = p.free || w.Answered // it has got on meanwhile
			g.Waits = append(g.Waits, c.waitOf(p, w, all, shared))
		}
		g.Free[p.node] = p.free
	})
	return g
}

// InParts calls f for each of them under Machine.Mu, which it gives to others after AtOnce.
func (c *Client) InParts(waiting []*WaitingOwner, f func(*WaitingOwner)) {
	for part := range slices.Chunk(waiting, core.AtOnce) {
		c.Lock()
		for _, p := range part {
			f(p)
		}
		c.unlockInside()
	}
}

// sharedBy adds to shared what p has of the locks that are its keys. It leaves out permits that p has by several holds,
// or beside which it waits for more than one thing. p has several goroutines then, and one of them may give the permits
// back. The caller holds Machine.Mu.
func (c *Client) sharedBy(p *WaitingOwner, shared map[driver.Key][]waitgraph.Obstacle[localHold]) {
	for _, l := range holdsOnAny(p.o, &c.Machine, shared) {
		if l.Ended() != nil {
			continue
		}
		key, weight := l.Lock.Key(), 1
		if key.Kind == driver.KindSemaphore {
			if len(p.waits) > 1 || p.o.First(&c.Machine, key,
				func(other *core.Hold) bool { return other != l && other.Ended() == nil }) != nil {
				continue
			}
			weight = l.Engine.Lock.Terms.Share.Weight
		}
		shared[key] = append(shared[key], waitgraph.Obstacle[localHold]{
			Node: p.node, Weight: weight, What: localHold{p.o, l.Engine, l.Engine.Pass, l.Mode()},
		})
	}
}

// waitOf returns what w of p waits for. Only holds of owners that wait themselves are obstacles: any other owner may
// get on. The caller holds Machine.Mu.
func (c *Client) waitOf(
	p *WaitingOwner, w *core.Waiter, all *WaiterSet, shared map[driver.Key][]waitgraph.Obstacle[localHold],
) *waitgraph.Wait[*core.Waiter, localHold] {
	wants, m := &waitgraph.Wait[*core.Waiter, localHold]{Node: p.node, What: w}, w.Hold.Lock
	if !m.Terms.Share.Direct {
		if g := c.holderFor(w); g != nil {
			if by := all.Owners[g.Holder().Owner]; by != nil {
				wants.By = []waitgraph.Obstacle[localHold]{{
					Node: by.node, Weight: 1, What: localHold{by.o, g, g.Pass, driver.Exclusive},
				}}
			}
		}
		return wants
	}
	if m.Key().Kind == driver.KindSemaphore {
		wants.Spare = m.Terms.Share.Limit - m.Terms.Share.Weight
	}
	for _, o := range shared[m.Key()] {
		if o.Node != p.node && (m.Key().Kind == driver.KindSemaphore || excludes(o.What.mode, m.Terms.Share.Mode)) {
			wants.By = append(wants.By, o)
		}
		if len(wants.By) == mostInTheWay {
			break
		}
	}
	return wants
}

// excludes reports whether two owners cannot hold a read/write lock in these two modes side by side.
func excludes(a, b driver.Mode) bool {
	return a == driver.Exclusive || b == driver.Exclusive || a == driver.Upgradeable && b == driver.Upgradeable
}

// holderFor returns the grant that is in the way of w, if w waits for a mutex that another owner of this client holds.
// The caller holds Machine.Mu.
func (c *Client) holderFor(w *core.Waiter) *core.EngineHold {
	m := w.Hold.Lock
	if m.Key().Kind != driver.KindMutex {
		return nil
	}
	for g := c.EngineHolds[m.Key().Name]; g != nil; g = g.After {
		if g.Lock.Key() == m.Key() && g.Phase == grants.Live && g.IsHeld() &&
			g.Holder().Owner != w.Hold.Owner {
			return g
		}
	}
	return nil
}

// holdsOnAny returns the holds of o on locks of c that are among keys. It walks the shorter of what o holds and the
// keys. The caller holds Machine.Mu.
func holdsOnAny(
	o *core.Owner,
	c *core.Machine,
	keys map[driver.Key][]waitgraph.Obstacle[localHold],
) (found []*core.Hold) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	take := func(l *core.Hold) {
		if _, is := keys[l.Lock.Key()]; is && l.Lock.Core == c {
			found = append(found, l)
		}
	}
	if many := o.Holds.Many; many != nil && len(keys) < len(many.On) {
		for key := range keys {
			for l := range o.Holds.OnLock(key) {
				take(l)
			}
		}
		return found
	}
	for l := range o.Holds.All() {
		take(l)
	}
	return found
}

// Owners named by WithOwner that wait for each other, by one client or by several, as the engine lists them. Only such
// owners are the same for every client. A list is not a picture of one instant. So a cycle counts if two lists have it,
// with the same tokens and the same waits: between the two none of them moved. Every client that has a part in the
// cycle finds the same victim, and the client in which the victim waits ends its wait.
//
// A list costs the engine as much as it has keys, of whatever program. So a client first looks at the locks around its
// own waiters, and asks for a list only if one of them can be the victim (waitgraph.Suspect). What looks cannot
// exclude, because an owner may hold something in another process, the waiters of a line list for by turns, one each
// RemoteMost.

const (
	// RemoteFirst and RemoteMost are the shortest and the longest pause between two searches; each that finds nothing
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
	turn  int                                   // of the searches that RemoteMost was between
	seen  waitgraph.Facts[waitgraph.ListedFact] // what the last list had
}

// look has the engine asked if it is time to, in a goroutine of its own. The caller holds Machine.Mu.
func (f *remoteDetector) look(c *Client, now trust.Instant, waiters *WaiterSet) {
	first := waiters.remotePause()
	inspector, can := c.Driver.(driver.Inspector)
	_, blind := c.Traits.Lacking(driver.Waiters)
	switch {
	case first == 0:
		f.Pause, f.seen = 0, nil
		return
	case !can || blind || f.busy:
		return
	// A new suspicion. The wait began SearchAfter ago, because that is when the first search runs.
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
	c.Background.Go(func() { // ends when the engine has answered, after listTimeout, or with c.base
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

// TakeList processes what a search has found; g is nil if it asked for no list. The caller holds Machine.Mu.
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
	for w := range c.LinesOfOne {
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
