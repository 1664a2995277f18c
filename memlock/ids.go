package memlock

import (
	"container/heap"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Identities: requests that live, requests that are over, and the agenda in which both end. They make every request
// idempotent, which a driver owes its callers (package driver).

// ref names one request for ever. The key is part of it: the same ID on another lock is another request.
type ref struct {
	key driver.Key
	id  string
}

// phase is how far a request has come.
type phase uint8

const (
	waiting phase = iota // in its lock's queue
	held                 // granted, and renewable
	// Released with Keep, or lost with a LockDelay: it keeps the lock closed until its lease ends, and answers to
	// nobody.
	kept
	parked // waits for the signal of a condition
)

// record is a request that waits or holds.
type record struct {
	entry
	req    driver.Request
	beside string // the ID of the hold beside which it was asked for; empty if it stands on its own
	phase  phase
	since  time.Time // when it was asked for while it waits, then when it was granted
	block  block     // the tokens of its grant
	pass   int       // how often it has passed on inside the client, by its latest renewal
	// Nobody holds it any more, but its client keeps it with a short lease; see driver.Renewal.
	retained bool
	group    *group            // nil while it waits
	lost     driver.LostReason // why it is kept; empty if it was released
	undone   bool              // it is being undone, and a late copy may come
	// It has been signalled, and its client has not confirmed yet that it has the lock: if it goes now, the signal goes
	// on.
	signalled bool
	from      *Driver // the client that asked for it; see Driver.Stall
}

// tomb remembers a request that is over, so that a late copy of it takes nothing.
type tomb struct {
	entry
	reason driver.LostReason // empty if it was released or undone
	token  uint64            // of the hold, for the *LostError
	owner  string            // of a named owner; else empty
	// Where it belonged, if it expired: later holds of that group have not taken the lock from it.
	group  *group
	shared bool // it was not exclusive
	undone bool // its outcome was unknown to its client

	in           *row // nil if only time removes it
	before, next *tomb
}

// entry is a place in an agenda.
type entry struct {
	ref   ref
	at    time.Time // when it is due
	index int       // its place in the agenda
}

// agenda orders entries by time, the earliest first. Each entry knows its index, so that a renewal moves it in place
// and leaves nothing stale behind.
type agenda []*entry

// Len is for package heap.
func (a agenda) Len() int { return len(a) }

// Less is for package heap.
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }

// Swap is for package heap.
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

// Push is for package heap.
func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.index = len(*a)
	*a = append(*a, e)
}

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return e
}

// add puts e in, due at the instant at.
func (a *agenda) add(e *entry, at time.Time) {
	e.at = at
	heap.Push(a, e)
}

// move changes when e is due.
func (a *agenda) move(e *entry, at time.Time) {
	e.at = at
	heap.Fix(a, e.index)
}

func (a *agenda) remove(e *entry) { heap.Remove(a, e.index) }

// due returns the earliest entry whose time has come. An end is exclusive: what lasts until now is over.
func (a agenda) due(now time.Time) (*entry, bool) {
	if len(a) == 0 || a[0].at.After(now) {
		return nil, false
	}
	return a[0], true
}

// mostTombs is how many released requests a store remembers, and how many undone ones. A request in memory is over when
// its call has returned. So a copy of one comes only from a driver around this one that delays or repeats requests, as
// tests have. There is room for this many other requests in between. Without a bound each cycle of lock and unlock
// would be remembered for a lease, which may be hours.
const mostTombs = 1 << 14

// graveyard keeps the tombs until a late copy of their request can no longer come. Tombs of lost holds also tell the
// holder what has become of its hold, so they stay for their time. There are no more of them than there were holds.
type graveyard struct {
	tombs            map[ref]*tomb
	agenda           agenda
	released, undone row // two, so that many releases do not push out what was undone
}

// row is tombs in the order in which they came.
type row struct {
	first, last *tomb
	n           int
}

// bury keeps t until at, or longer if the same request has been buried for longer. The first reason stays, because the
// request ended only once.
func (g *graveyard) bury(t tomb, at time.Time) {
	old := g.tombs[t.ref]
	if old == nil {
		g.tombs[t.ref] = &t
		g.agenda.add(&t.entry, at)
		g.bound(&t)
		return
	}
	if at.After(old.at) {
		g.agenda.move(&old.entry, at)
	}
	// Its client does not know the outcome, so it moves to the row from which releases do not push it out.
	if t.undone && old.in == &g.released {
		old.in.drop(old)
		old.undone, old.before, old.next = true, nil, nil
		g.bound(old)
	}
}

// bound puts t in its row, if it has one, and forgets the oldest there if there are too many.
func (g *graveyard) bound(t *tomb) {
	switch {
	case t.reason != "":
		return
	case t.undone:
		t.in = &g.undone
	default:
		t.in = &g.released
	}
	t.in.push(t)
	if t.in.n > mostTombs {
		g.remove(t.in.first)
	}
}

// forget removes the tombs whose time has come.
func (g *graveyard) forget(now time.Time) {
	for e, ok := g.agenda.due(now); ok; e, ok = g.agenda.due(now) {
		g.remove(g.tombs[e.ref])
	}
}

// remove forgets t before or at its time.
func (g *graveyard) remove(t *tomb) {
	g.agenda.remove(&t.entry)
	delete(g.tombs, t.ref)
	if t.in != nil {
		t.in.drop(t)
	}
}

// push puts t at the end.
func (r *row) push(t *tomb) {
	if t.before = r.last; r.last == nil {
		r.first = t
	} else {
		r.last.next = t
	}
	r.last = t
	r.n++
}

// drop takes t out; it must be in r.
func (r *row) drop(t *tomb) {
	if t.before == nil {
		r.first = t.next
	} else {
		t.before.next = t.next
	}
	if t.next == nil {
		r.last = t.before
	} else {
		t.next.before = t.before
	}
	r.n--
}
