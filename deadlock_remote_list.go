package interlock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The graph of what an engine lists: the named owners that wait, what is in their way, and who stands before them
// (deadlock_remote.go asks for the list).

// remoteGraph is the waitGraph of what an engine lists, and remoteEdge an edge of it. Its nodes are the named owners
// that wait. Every other owner may get on, as far as a list tells.
type (
	remoteGraph = waitGraph[remoteWait, remoteObstacle]
	remoteEdge  = waitEdge[remoteWait, remoteObstacle]
)

// remoteWait is one wait as the engine lists it.
type remoteWait struct {
	owner  string
	key    driver.Key
	shared bool
	since  time.Time
}

// remoteObstacle is what is in the way of a wait: a hold, or a wait that came before it.
type remoteObstacle struct {
	owner string
	token uint64    // of a hold
	ahead bool      // it is a wait and not a hold
	since time.Time // of a wait
}

// remoteFact is both together: the same as long as neither has moved.
type remoteFact struct {
	remoteWait
	by remoteObstacle
}

// remoteFactOf returns the fact that o is in the way of w.
func remoteFactOf(w *blockedWait[remoteWait, remoteObstacle], o *obstacle[remoteObstacle]) remoteFact {
	return remoteFact{w.what, o.what}
}

// mostAhead bounds how many waits before another are looked at: in a line of thousands each is behind all others.
const mostAhead = 32

// lockList is the locks of a list for which named owners wait, while the graph is made of it.
type lockList struct {
	locks  []driver.LockInfo
	waits  map[string]int  // how many waits each owner has
	number map[string]int  // the node of each owner
	free   map[string]bool // owners that may get on whatever the others do
	g      *remoteGraph
}

// remoteWaitGraph asks the engine for all locks, and returns who of the named owners waits for whom, settled. It blocks
// for as long as the list takes, and holds no mutex.
func remoteWaitGraph(ctx context.Context, inspector driver.Inspector) (*remoteGraph, error) {
	l := lockList{waits: make(map[string]int), number: make(map[string]int), free: make(map[string]bool)}
	for info, err := range inspector.Locks(ctx, "") {
		if err != nil {
			return nil, err
		}
		for _, w := range info.Waiters {
			if w.Named {
				l.waits[w.Owner]++
			}
		}
		if slices.ContainsFunc(info.Waiters, func(w driver.Waiter) bool { return w.Named }) {
			l.locks = append(l.locks, info)
		}
	}
	for name, n := range l.waits {
		if o := names.known(name); o != nil && int(o.waits.Load()) > n {
			// It also waits for a condition, or for a lock of another store.
			l.free[name] = true
		}
	}
	l.draw()
	l.g.settle()
	return l.g, nil
}

// draw makes the graph, in an order that is the same for every client.
func (l *lockList) draw() {
	for n, owner := range slices.Sorted(maps.Keys(l.waits)) {
		l.number[owner] = n
	}
	l.g = &remoteGraph{}
	slices.SortFunc(l.locks, func(a, b driver.LockInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	for i := range l.locks {
		for at, w := range l.locks[i].Waiters {
			if w.Named {
				l.add(&l.locks[i], at)
			}
		}
	}
	l.g.free = make([]bool, len(l.waits))
	for owner, free := range l.free {
		l.g.free[l.number[owner]] = free
	}
}

// add adds the wait of the waiter at place at of info, with its obstacles.
func (l *lockList) add(info *driver.LockInfo, at int) {
	w := info.Waiters[at]
	wants := &blockedWait[remoteWait, remoteObstacle]{
		node: l.number[w.Owner],
		what: remoteWait{w.Owner, driver.Key{Kind: info.Kind, Name: info.Name}, w.Shared, w.Since},
	}
	l.g.waits = append(l.g.waits, wants)
	has := func(h driver.Holder) bool { return h.Named && h.Owner == w.Owner }
	switch info.Kind {
	case driver.KindMutex:
		l.free[w.Owner] = l.free[w.Owner] || slices.ContainsFunc(info.Holders, has) // it is just being let in
	case driver.KindRWMutex:
		l.free[w.Owner] = l.free[w.Owner] || w.Shared && slices.ContainsFunc(info.Holders, has)
		l.behind(info, at, wants)
	case driver.KindSemaphore:
		if wants.spare = info.Limit - w.Weight; wants.spare < 0 { // nobody would have queued that
			l.free[w.Owner] = true
			return
		}
		l.behind(info, at, wants)
	default:
		l.free[w.Owner] = true
		return
	}
	for _, h := range info.Holders {
		if weight := l.weighs(info, h, w); weight > 0 {
			wants.by = append(wants.by, obstacle[remoteObstacle]{
				l.number[h.Owner], weight,
				remoteObstacle{owner: h.Owner, token: h.Token},
			})
		}
	}
}

// weighs returns how much a holder is in the way of a waiter. That is nothing if the hold is over and only keeps others
// out for a while, or if both can be inside together. It is nothing, too, if its owner has no name, is the waiter's
// own, or does not wait itself. A list does not tell an upgradeable read, so that counts as a plain one. Permits count
// as Client.sharedBy says.
func (l *lockList) weighs(info *driver.LockInfo, h driver.Holder, w driver.Waiter) int {
	switch {
	case h.Resting || !h.Named || h.Owner == w.Owner || l.waits[h.Owner] == 0, info.Kind == driver.KindRWMutex &&
		w.Shared && h.Shared:
		return 0
	case info.Kind != driver.KindSemaphore:
		return 1
	case l.waits[h.Owner] > 1:
		return 0
	}
	for _, other := range info.Holders {
		if other.Named && other.Owner == h.Owner && other.Token != h.Token {
			return 0
		}
	}
	return h.Weight
}

// behind adds the named owners that wait before a waiter as obstacles: it does not overtake them, whatever it waits
// for. Each alone makes the wait hopeless, so it weighs more than the wait has to spare.
func (l *lockList) behind(info *driver.LockInfo, at int, wants *blockedWait[remoteWait, remoteObstacle]) {
	for _, v := range info.Waiters[max(0, at-mostAhead):at] {
		if v.Named && v.Owner != wants.what.owner && v.Position > 0 {
			thing := remoteObstacle{owner: v.Owner, ahead: true, since: v.Since}
			wants.by = append(wants.by, obstacle[remoteObstacle]{l.number[v.Owner], wants.spare + 1, thing})
		}
	}
}
