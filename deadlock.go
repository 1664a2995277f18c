package interlock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Owners of this client that wait for each other, each for a mutex that the next one holds. A search runs only while
// somebody waits who holds something, or may. What it finds must be there twice, a while apart, with the same waits and the
// same acquisitions: then nobody of them has moved.
//
// An owner counts as stuck only if all of its waits do: if one of them can end well, that goroutine may give back what the
// others wait for. What else an owner does is not known: one whose goroutines share it, and of which one waits while another
// works and would give back the lock in time, looks like one that only waits. Reads, writes and permits are not looked at, nor
// waits for what another client holds: those who wait so count as free. For these see farSeeker.

const (
	// seekAfter is how long a wait lasts before anybody looks, and then between two looks. Nearly all are over by then.
	seekAfter = 500 * time.Millisecond
)

// seeker is the search's part of a client. Guarded by Client.mu.
type seeker struct {
	at   instant // when to look next; never if there is no need
	seen []knot  // what the last look found
	far  farSeeker
}

// knot is one owner of a cycle: what it waits for, and what it holds that is in the way of the one before.
type knot struct {
	w    *waiter
	by   *grant // which w waits for
	pass int32
}

// party is an owner who waits.
type party struct {
	id    ownerID
	waits []knot
	free  bool // may get on
}

// ownerID tells owners apart: anonymous ones have ids of their own.
type ownerID struct {
	id    string
	named bool
}

func (o *owner) ident() ownerID { return ownerID{o.id, o.named} }

// suspects has the search look soon if o, who begins to wait or waits on while it gets something, may be part of a
// deadlock: who holds nothing, and waits for nothing else, is in nobody's way. The caller holds Client.mu.
func (c *Client) suspects(o *owner) {
	if c.seek.at < never || !o.named && o.waits.Load() < 2 && !o.holdsAny() {
		return
	}
	c.seek.at = c.reading().plus(seekAfter)
	c.wakeBy(c.seek.at)
}

// look searches if it is time to, and returns when to look next. The caller holds Client.mu.
func (k *seeker) look(c *Client, now instant) instant {
	if now < k.at {
		return k.at
	}
	parties, suspicious, named := c.parties()
	k.at = never
	if suspicious {
		k.at = now.plus(seekAfter)
	}
	k.far.look(c, now, named)
	found := cycle(parties)
	if len(found) == 0 || !slices.Equal(found, k.seen) {
		k.seen = found
		return k.at
	}
	k.seen = nil
	victim := slices.MaxFunc(found, func(a, b knot) int { return cmp.Compare(a.w.since, b.w.since) })
	victim.w.refuse(&deadlockError{key: victim.w.lease.m.key, cycle: describeCycle(found, victim.w)})
	return k.at
}

// parties returns everybody who waits, and whether any of them, or any with a name, holds something. The caller holds
// Client.mu.
func (c *Client) parties() (all map[ownerID]*party, suspicious, named bool) {
	all = make(map[ownerID]*party)
	of := func(o *owner) *party {
		p := all[o.ident()]
		if p == nil {
			p = &party{id: o.ident()}
			all[o.ident()] = p
		}
		return p
	}
	visible := make(map[*owner]int32)
	note := func(w *waiter, tries bool) {
		o := w.lease.owner
		visible[o]++
		p := of(o)
		k := knot{w: w}
		if k.by = c.holderFor(w); k.by == nil || tries {
			p.free = true
			return
		}
		k.pass = k.by.pass
		p.waits = append(p.waits, k)
	}
	for _, q := range c.queues {
		q.waiters.each(func(w *waiter) { note(w, false) })
	}
	for w := range c.alone {
		note(w, w.own.r.Try)
	}
	for o, n := range visible {
		if o.waits.Load() > n { // it waits by another client too
			of(o).free = true
		}
		holds := o.holdsAny()
		suspicious = suspicious || o.named || n > 1 || holds
		named = named || o.named && holds
	}
	return all, suspicious, named
}

// holderFor returns what w waits for, if another owner of this client holds it. The caller holds Client.mu.
func (c *Client) holderFor(w *waiter) *grant {
	m := w.lease.m
	if m.key.Kind != driver.KindMutex {
		return nil
	}
	for g := c.grants[m.key.Name]; g != nil; g = g.next {
		if g.m.key == m.key && g.phase == live && g.holds.first != nil && g.holder().owner.ident() != w.lease.owner.ident() {
			return g
		}
	}
	return nil
}

// cycle returns owners that are stuck because of each other, in the order of waiting, from the one with the smallest id; or
// nothing.
func cycle(parties map[ownerID]*party) []knot {
	for more := true; more; { // who waits for somebody free is free
		more = false
		for id, p := range parties {
			if p.free || slices.ContainsFunc(p.waits, func(k knot) bool { return parties[k.by.holder().owner.ident()] == nil }) {
				delete(parties, id)
				more = true
			}
		}
	}
	if len(parties) == 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(parties), func(a, b ownerID) int { return cmp.Compare(a.id, b.id) })
	var path []knot
	visited := make(map[ownerID]int)
	for at := parties[ids[0]]; ; {
		if from, seen := visited[at.id]; seen {
			return rotate(path[from:])
		}
		visited[at.id] = len(path)
		k := slices.MinFunc(at.waits, func(a, b knot) int { return cmp.Compare(a.w.since, b.w.since) })
		path = append(path, k)
		at = parties[k.by.holder().owner.ident()]
	}
}

// rotate begins a cycle with the smallest owner, so that two looks find the same.
func rotate(path []knot) []knot {
	first := 0
	for i, k := range path {
		if k.w.lease.owner.id < path[first].w.lease.owner.id {
			first = i
		}
	}
	return slices.Concat(path[first:], path[:first])
}

// refuse ends the wait of w with err. The caller holds Client.mu.
func (w *waiter) refuse(err error) {
	if w.own != nil {
		w.leave()
		w.answer(err)
		return
	}
	w.answer(err)
	w.q.remove(w)
}

// describeCycle tells the cycle from the victim on.
func describeCycle(found []knot, victim *waiter) string {
	from := slices.IndexFunc(found, func(k knot) bool { return k.w == victim })
	var b strings.Builder
	for i := range found {
		k := found[(from+i)%len(found)]
		if i > 0 {
			b.WriteString(", who ")
		} else {
			fmt.Fprintf(&b, "owner %s ", k.w.lease.owner.id)
		}
		b.WriteString(waitsForText(k.w.lease.Name(), k.by.holder().owner.id))
	}
	return b.String()
}

func waitsForText(name, holder string) string {
	return fmt.Sprintf("waits for %q, held by owner %s", name, holder)
}

// deadlockError says who waits for whom.
type deadlockError struct {
	key   driver.Key
	cycle string
}

// Error gives the lock and the cycle.
func (e *deadlockError) Error() string {
	return fmt.Sprintf("interlock: lock %q: %s: %s", e.key.Name, ErrDeadlock, e.cycle)
}

// Is matches ErrDeadlock.
func (e *deadlockError) Is(t error) bool { return t == ErrDeadlock }
