package interlock

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// mostInTheWay bounds how many holds are looked at that are in the way of one wait, so that a crowd of readers which waits for
// another such crowd does not keep the client from its work.
const mostInTheWay = 64

// crowd is everybody of a client who waits.
type crowd struct {
	of         map[*owner]*party
	suspicious bool // somebody of them holds something, has a name, or waits twice
	named      bool // somebody has a name
	holds      bool // and holds something in this process
}

// party is an owner who waits.
type party struct {
	o     *owner
	n     int // its number in the graph
	waits []*waiter
	free  bool // it may get on, for what this client knows
}

// farPause is how long a wait lasts before the engine is asked who else waits; no time if it is not to be. A named owner that
// holds nothing here may hold something in another process, but few do.
func (c *crowd) farPause() time.Duration {
	switch {
	case c.holds:
		return farFirst
	case c.named:
		return farMost
	}
	return 0
}

// waiting returns everybody who waits. The caller holds Client.mu.
func (c *Client) waiting() *crowd {
	all := &crowd{of: make(map[*owner]*party)}
	note := func(w *waiter, tries bool) {
		p := all.of[w.lease.owner]
		if p == nil {
			p = &party{o: w.lease.owner}
			all.of[p.o] = p
		}
		p.waits = append(p.waits, w)
		p.free = p.free || tries
	}
	for _, q := range c.queues {
		q.waiters.each(func(w *waiter) { note(w, false) })
	}
	for w := range c.alone {
		note(w, w.own.r.Try)
	}
	for o, p := range all.of {
		n, holds := len(p.waits), o.holdsAny()
		p.free = p.free || int(o.waits.Load()) > n // it waits by another client too, or for a condition
		all.suspicious = all.suspicious || o.named || n > 1 || holds
		all.named = all.named || o.named
		all.holds = all.holds || o.named && holds
	}
	return all
}

// picture returns who of them waits for whom. The caller holds Client.mu.
func (c *Client) picture(all *crowd) *nearGraph {
	parties := make([]*party, 0, len(all.of))
	shared := make(map[driver.Key][]obstacle[nearHold])
	for _, p := range all.of {
		parties = append(parties, p)
		for _, w := range p.waits {
			if w.lease.m.p.share.apart {
				shared[w.lease.m.key] = nil
			}
		}
	}
	slices.SortFunc(parties, func(a, b *party) int { return cmp.Compare(a.o.id, b.o.id) })
	g := &nearGraph{free: make([]bool, len(parties))}
	for n, p := range parties {
		p.n, g.free[n] = n, p.free
		c.sharedBy(p, shared)
		slices.SortFunc(p.waits, func(a, b *waiter) int { return cmp.Compare(a.since, b.since) })
	}
	for _, p := range parties {
		for _, w := range p.waits {
			g.wishes = append(g.wishes, c.wishOf(p, w, all, shared))
		}
	}
	return g
}

// sharedBy adds to shared what p has of the locks that are its keys. Permits that p has by several holds, or beside which it
// waits for more than one thing, are left out: it has several goroutines then, and one of them may give the permits back. The
// caller holds Client.mu.
func (c *Client) sharedBy(p *party, shared map[driver.Key][]obstacle[nearHold]) {
	if len(shared) == 0 {
		return
	}
	for _, l := range p.o.onAny(c, shared) {
		if l.ended() != nil {
			continue
		}
		key, weight := l.m.key, 1
		if key.Kind == driver.KindSemaphore {
			if len(p.waits) > 1 || p.o.first(c, key, func(other *Lease) bool { return other != l && other.ended() == nil }) != nil {
				continue
			}
			weight = l.g.m.p.share.weight
		}
		shared[key] = append(shared[key], obstacle[nearHold]{p.n, weight, nearHold{p.o, l.g, l.g.pass, l.mode()}})
	}
}

// wishOf returns what w of p waits for. If what is in its way is nobody's who waits too, nothing is. The caller holds Client.mu.
func (c *Client) wishOf(p *party, w *waiter, all *crowd, shared map[driver.Key][]obstacle[nearHold]) *wish[*waiter, nearHold] {
	wants, m := &wish[*waiter, nearHold]{party: p.n, what: w}, w.lease.m
	if !m.p.share.apart {
		if g := c.holderFor(w); g != nil {
			if by := all.of[g.holder().owner]; by != nil {
				wants.by = []obstacle[nearHold]{{by.n, 1, nearHold{by.o, g, g.pass, driver.Exclusive}}}
			}
		}
		return wants
	}
	if m.key.Kind == driver.KindSemaphore {
		wants.spare = m.p.share.limit - m.p.share.weight
	}
	for _, o := range shared[m.key] {
		if o.party != p.n && (m.key.Kind == driver.KindSemaphore || excludes(o.what.mode, m.p.share.mode)) {
			wants.by = append(wants.by, o)
		}
		if len(wants.by) == mostInTheWay {
			break
		}
	}
	return wants
}

// excludes reports whether two modes of a read/write lock cannot be held side by side by two owners.
func excludes(a, b driver.Mode) bool {
	return a == driver.Exclusive || b == driver.Exclusive || a == driver.Upgradeable && b == driver.Upgradeable
}

// holderFor returns what w waits for, a mutex, if another owner of this client holds it. The caller holds Client.mu.
func (c *Client) holderFor(w *waiter) *grant {
	m := w.lease.m
	if m.key.Kind != driver.KindMutex {
		return nil
	}
	for g := c.grants[m.key.Name]; g != nil; g = g.next {
		if g.m.key == m.key && g.phase == live && g.holds.first != nil && g.holder().owner != w.lease.owner {
			return g
		}
	}
	return nil
}

// onAny returns the holds on locks of c that are among keys. It goes through the shorter of what o holds and the keys.
func (o *owner) onAny(c *Client, keys map[driver.Key][]obstacle[nearHold]) (found []*Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	take := func(l *Lease) {
		if _, is := keys[l.m.key]; is && l.m.c == c {
			found = append(found, l)
		}
	}
	if many := o.holds.many; many != nil && len(keys) < len(many.on) {
		for key := range keys {
			for l := range o.holds.onLock(key) {
				take(l)
			}
		}
		return found
	}
	for l := range o.holds.all() {
		take(l)
	}
	return found
}
