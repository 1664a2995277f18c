package memlock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// One lock, and every judgement about a request: whether it re-enters, fits, queues, or would wait for its own owner.
// These rules are the reference for the scripts of redislock.

// lock is one name in use: it exists while somebody holds it or waits for it.
type lock struct {
	key    driver.Key
	limit  int       // permits of a semaphore; see sized
	sized  bool      // the first request that is not exclusive has fixed limit
	last   uint64    // the last token granted, or the store's floor
	groups []*group  // the owners that hold it
	queue  []*record // the next first
}

// verdict says how a request stands to what its owner already has.
type verdict uint8

const (
	queues   verdict = iota // on its own: it queues if it does not fit, and gets a token of its own
	reenters                // its owner is in already, in a mode that covers it
	upgrades                // its owner has the upgradeable read and wants to write: front of the queue, new token
	stuck                   // it would wait for its own owner, for ever
	orphaned                // the hold beside which it was asked for is over
)

// judge says how r stands to the holds of its owner, and which group it joins. The hold without does not count. Without
// a name and without a hold to stand beside, an owner is never recognised: its earlier holds are strangers to the
// engine.
func (l *lock) judge(r demand, without *record) (verdict, *group) {
	if !r.Named && r.beside == "" {
		return queues, nil
	}
	if r.beside != "" && !slices.ContainsFunc(l.groups, func(g *group) bool { return g.has(r.beside) }) {
		return orphaned, nil
	}
	own := l.ownGroups(r, without)
	switch {
	case own.writing != nil && r.takesPermits() && r.Weight > r.Limit-own.writing.permits():
		return stuck, nil // more permits than there are would be out when the exclusive hold ends
	case own.writing != nil:
		return reenters, own.writing
	case r.takesPermits():
		return queues, nil // permits are counted, each acquisition takes its own
	case own.upgradeable != nil && r.Mode == driver.Exclusive:
		return upgrades, own.upgradeable
	// It covers a plain read, and another one of its kind by the same owner.
	case own.upgradeable != nil:
		return reenters, own.upgradeable
	case own.reading == nil:
		return queues, nil
	}
	v := l.judgeReader(r)
	if v == stuck {
		return stuck, nil // it belongs to no group
	}
	return v, own.reading
}

// judgeReader is judge for an owner that has a plain read and nothing else.
func (l *lock) judgeReader(r demand) verdict {
	if r.Mode == driver.Shared || r.Mode == driver.Upgradeable && !l.has(driver.Upgradeable) {
		return reenters
	}
	// A reader that waits to write waits for itself. One that waits for the upgradeable read of another does so for
	// somebody who may upgrade at any moment and then waits for this reader.
	return stuck
}

// ownGroups are the groups of one owner by what they may do; nil where it has none.
type ownGroups struct{ writing, upgradeable, reading *group }

// ownGroups returns those of r's owner. The hold without does not count.
func (l *lock) ownGroups(r demand, without *record) (own ownGroups) {
	for _, g := range l.groups {
		if !r.owns(g, without) {
			continue
		}
		switch g.liveMode(without) {
		case driver.Exclusive:
			own.writing = g
			return own
		case driver.Upgradeable:
			own.upgradeable = g
		case driver.Shared:
			own.reading = g
		}
	}
	return own
}

// entangles reports whether another request of r's owner waits, after whose grant r would be stuck, or might be.
func (l *lock) entangles(r *driver.Request) bool {
	return r.Named && slices.ContainsFunc(l.queue, func(w *record) bool {
		if !w.req.Named || w.req.Owner != r.Owner {
			return false
		}
		// A request for permits would be stuck after the exclusive hold if it wants more than there are. A plain read
		// never is.
		if r.Mode == driver.Shared {
			return r.Limit > 0 && w.req.Mode == driver.Exclusive
		}
		// r writes, or may. After a plain read of the same owner judgeReader would call it stuck.
		return w.req.Mode == driver.Shared
	})
}

// fits reports whether r is compatible with everybody who holds l, except for own.
func (l *lock) fits(r *driver.Request, own *group) bool {
	used := 0
	for _, g := range l.groups {
		if g == own {
			continue
		}
		mode := g.mode()
		if r.Mode == driver.Exclusive || mode == driver.Exclusive {
			return false
		}
		// Two of them would wait for each other as soon as both upgrade.
		if r.Mode == driver.Upgradeable && mode == driver.Upgradeable {
			return false
		}
		// Readers count too, but they bring no limit, so nothing is compared with the sum.
		used += g.permits()
	}
	return r.Mode == driver.Exclusive || r.Limit == 0 || r.Weight <= r.Limit-used
}

// free reports whether r can be granted at once: it fits, and overtakes nobody that it must not overtake.
func (l *lock) free(r demand) bool {
	v, own := l.judge(r, nil)
	return v == reenters || (v == upgrades || len(l.queue) == 0) && l.fits(r.Request, own)
}

// has reports whether anybody holds l in mode.
func (l *lock) has(mode driver.Mode) bool {
	return slices.ContainsFunc(l.groups, func(g *group) bool { return g.mode() == mode })
}

// weight returns the weight that operators see: an exclusive request counts as one.
func weight(r *driver.Request) int {
	if r.Mode == driver.Exclusive {
		return 1
	}
	return r.Weight
}

// size fixes l's limit if r is the first request to bring one.
func (l *lock) size(r *driver.Request) {
	if r.Mode != driver.Exclusive && !l.sized {
		l.limit, l.sized = r.Limit, true
	}
}

// unused reports whether l has neither a holder nor a waiter. The hold without does not count.
func (l *lock) unused(without *record) bool {
	if len(l.queue) > 0 || len(l.groups) > 1 {
		return false
	}
	return len(l.groups) == 0 || len(l.groups[0].holds) == 1 && l.groups[0].holds[0] == without
}

// takenFrom reports whether somebody holds l who could not have been beside the hold under t.
func (l *lock) takenFrom(t *tomb) bool {
	return slices.ContainsFunc(l.groups, func(g *group) bool {
		if g == t.group || t.owner != "" && g.belongs(t.owner, nil) {
			return false
		}
		// Readers, and holders of permits, may have been inside beside it.
		return !t.shared || g.mode() == driver.Exclusive
	})
}

// enqueue puts rec at the end of the queue, an upgrade before everybody who does not upgrade. The others wait for its
// owner's read to end, so behind them it would wait for ever.
func (l *lock) enqueue(rec *record) {
	v, _ := l.judge(rec.demand(), nil)
	if v != upgrades {
		l.queue = append(l.queue, rec)
		return
	}
	at := slices.IndexFunc(l.queue, func(w *record) bool {
		v, _ := l.judge(w.demand(), nil)
		return v != upgrades
	})
	if at < 0 {
		at = len(l.queue)
	}
	l.queue = slices.Insert(l.queue, at, rec)
}

// dequeue takes rec out of the queue.
func (l *lock) dequeue(rec *record) {
	if l.queue[0] == rec {
		l.queue[0] = nil // the array lives on behind the slice
		l.queue = l.queue[1:]
		return
	}
	at := slices.Index(l.queue, rec)
	l.queue = slices.Delete(l.queue, at, at+1)
}

// drop ends rec's part in its group, and the group with its last hold.
func (l *lock) drop(rec *record) {
	g := rec.group
	g.holds = slices.DeleteFunc(g.holds, func(h *record) bool { return h == rec })
	if len(g.holds) == 0 {
		l.groups = slices.DeleteFunc(l.groups, func(other *group) bool { return other == g })
	}
	rec.group = nil
}

// heldBy describes a holder that is in r's way, or any holder if none is known to be. It returns nil for a lock that
// nobody holds.
func (l *lock) heldBy(r demand) *driver.HeldError {
	if l == nil || len(l.groups) == 0 {
		return nil
	}
	g := l.groups[0]
	for _, other := range l.groups {
		// The owner's own hold is not in its way.
		if r.Request != nil && !r.owns(other, nil) {
			g = other
			break
		}
	}
	first := g.holds[0]
	return &driver.HeldError{
		Retains: first.req.Retains,
		Kind:    l.key.Kind, Name: l.key.Name,
		Owner: first.req.Owner, Client: first.req.Client,
		Token: g.block.first + uint64(first.pass),
		Since: g.since, Until: g.until(),
	}
}

// info describes l to operators. Each hold is listed by itself, also those of an owner that re-entered.
func (l *lock) info() driver.LockInfo {
	i := driver.LockInfo{Kind: l.key.Kind, Name: l.key.Name, Limit: l.limit}
	if (l.key.Kind == driver.KindMutex || l.key.Kind == driver.KindElection) && !l.sized {
		i.Limit = 1
	}
	for _, g := range l.groups {
		for _, h := range g.holds {
			i.Holders = append(i.Holders, driver.Holder{
				Owner: h.req.Owner, Client: h.req.Client, Label: h.req.Label, Token: h.block.first,
				Weight: weight(&h.req),
				Shared: h.req.Mode != driver.Exclusive, Since: h.since, Until: h.at, Named: h.req.Named,
				Cooldown: h.phase == kept, Retained: h.retained,
			})
		}
	}
	for n, w := range l.queue {
		i.Waiters = append(i.Waiters, driver.Waiter{
			Owner: w.req.Owner, Client: w.req.Client, Label: w.req.Label, Weight: weight(&w.req),
			Shared: w.req.Mode != driver.Exclusive, Since: w.since, Position: n + 1, Named: w.req.Named,
		})
	}
	return i
}
