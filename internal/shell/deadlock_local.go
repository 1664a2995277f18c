package shell

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

// The graph of what this client knows: its waiters, its grants and its owners (package waitgraph searches it).

// mostInTheWay bounds how many holds in the way of one wait are looked at. Otherwise a crowd of readers that waits for
// another such crowd would keep Machine.Mu for the product of both. An obstacle that is left out can only hide a
// deadlock, not invent one.
const mostInTheWay = 64

// waiterSet is all waiting owners of a client.
type waiterSet struct {
	Owners     map[*core.Owner]*WaitingOwner
	Suspicious bool // one of them holds something, has a name, or waits twice: a search may find something
	named      bool // one of them has a name
	holds      bool // one of them has a name and holds something in this process
}

// waitingOwner is an owner who waits.
type WaitingOwner struct {
	o     *core.Owner
	node  int // its number in the graph
	waits []*core.Waiter
	free  bool // it may get on, as far as this client knows
}

// remotePause returns how long a wait lasts before the engine is asked who else waits; 0 means never. A named owner
// that holds nothing here may hold something in another process, but few do, so it waits longest.
func (all *waiterSet) remotePause() time.Duration {
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
func (all *waiterSet) namedOnes() (ones []waitgraph.Waiting) {
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

// waiterSet returns all waiting owners. Only to copy the lines it takes Machine.Mu: an owner is missed, or taken for
// free, if it comes or goes meanwhile.
func (c *Client) WaiterSet() *waiterSet {
	all := &waiterSet{Owners: make(map[*core.Owner]*WaitingOwner)}
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
	for _, q := range c.Machine.Lines {
		q.Waiters.Each(func(w *core.Waiter) { lines = append(lines, w) })
	}
	for w := range c.Machine.LinesOfOne {
		if w.Request.Ask.Try {
			tries = append(tries, w)
		} else {
			lines = append(lines, w)
		}
	}
	return lines, tries
}

// note adds a wait, and returns its owner.
func (all *waiterSet) note(w *core.Waiter) *WaitingOwner {
	p := all.Owners[w.Hold.Owner]
	if p == nil {
		p = &WaitingOwner{o: w.Hold.Owner}
		all.Owners[p.o] = p
	}
	p.waits = append(p.waits, w)
	return p
}

// waitGraph returns who of them waits for whom. Nodes are in the order of the owners' names and waits in the order in
// which they began, so that two searches number them alike. It takes Machine.Mu for atOnce owners at a time.
func (c *Client) WaitGraph(all *waiterSet) *localGraph {
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

// inParts calls f for each of them under Machine.Mu, which it gives to others after atOnce.
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
	p *WaitingOwner, w *core.Waiter, all *waiterSet, shared map[driver.Key][]waitgraph.Obstacle[localHold],
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
	for g := c.Machine.EngineHolds[m.Key().Name]; g != nil; g = g.After {
		if g.Lock.Key() == m.Key() && g.Phase == grants.Live && g.Holds.First != nil && g.Holder().Owner != w.Hold.Owner {
			return g
		}
	}
	return nil
}

// holdsOnAny returns the holds of o on locks of c that are among keys. It walks the shorter of what o holds and the keys.
// The caller holds Machine.Mu.
func holdsOnAny(o *core.Owner, c *core.Machine, keys map[driver.Key][]waitgraph.Obstacle[localHold]) (found []*core.Hold) {
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
