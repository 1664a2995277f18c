package waitgraph

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The graph of what an engine lists: the named owners that wait, what is in their way, and who stands before them
// (internal/shell/deadlock.go asks for the list).

// ListGraph is the graph of what an engine lists. Its nodes are the named owners that wait. Every other owner may get
// on, as far as a list tells.
type ListGraph = Graph[ListedWait, ListedObstacle]

// ListEdge is an edge of a ListGraph.
type ListEdge = Edge[ListedWait, ListedObstacle]

// ListedWait is one wait as the engine lists it.
type ListedWait struct {
	Owner  string
	Key    driver.Key
	Shared bool
	Since  time.Time
}

// ListedObstacle is what is in the way of a wait: a hold, or a wait that came before it.
type ListedObstacle struct {
	Owner string
	Token uint64    // of a hold
	Ahead bool      // it is a wait and not a hold
	Since time.Time // of a wait
}

// ListedFact is both together: the same as long as neither has moved.
type ListedFact struct {
	ListedWait
	by ListedObstacle
}

// ListedFactOf returns the fact that o is in the way of w.
func ListedFactOf(w *Wait[ListedWait, ListedObstacle], o *Obstacle[ListedObstacle]) ListedFact {
	return ListedFact{w.What, o.What}
}

// mostAhead bounds how many waits before another are looked at: in a line of thousands each is behind all others.
const mostAhead = 32

// lockList is the locks of a list for which named owners wait, while the graph is made of it.
type lockList struct {
	locks  []driver.LockInfo
	waits  map[string]int  // how many waits each owner has
	number map[string]int  // the node of each owner
	free   map[string]bool // owners that may get on whatever the others do
	g      *ListGraph
}

// Listed asks the engine for all locks, and returns who of the named owners waits for whom, settled. It blocks
// for as long as the list takes. waitsHere returns how many waits of that name this process knows, of any kind.
func Listed(
	ctx context.Context, inspector driver.Inspector, waitsHere func(owner string) int,
) (*ListGraph, error) {
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
		if waitsHere(name) > n {
			// It also waits for a condition, or for a lock of another store.
			l.free[name] = true
		}
	}
	l.draw()
	l.g.Settle()
	return l.g, nil
}

// draw makes the graph, in an order that is the same for every client.
func (l *lockList) draw() {
	for n, owner := range slices.Sorted(maps.Keys(l.waits)) {
		l.number[owner] = n
	}
	l.g = &ListGraph{}
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
	l.g.Free = make([]bool, len(l.waits))
	for owner, free := range l.free {
		l.g.Free[l.number[owner]] = free
	}
}

// add adds the wait of the waiter at place at of info, with its obstacles.
func (l *lockList) add(info *driver.LockInfo, at int) {
	w := info.Waiters[at]
	wants := &Wait[ListedWait, ListedObstacle]{
		Node: l.number[w.Owner],
		What: ListedWait{w.Owner, driver.Key{Kind: info.Kind, Name: info.Name}, w.Shared, w.Since},
	}
	l.g.Waits = append(l.g.Waits, wants)
	has := func(h driver.Holder) bool { return h.Named && h.Owner == w.Owner }
	switch info.Kind {
	case driver.KindMutex:
		l.free[w.Owner] = l.free[w.Owner] || slices.ContainsFunc(info.Holders, has) // it is just being let in
	case driver.KindRWMutex:
		l.free[w.Owner] = l.free[w.Owner] || w.Shared && slices.ContainsFunc(info.Holders, has)
		l.behind(info, at, wants)
	case driver.KindSemaphore:
		if wants.Spare = info.Limit - w.Weight; wants.Spare < 0 { // nobody would have queued that
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
			wants.By = append(wants.By, Obstacle[ListedObstacle]{
				l.number[h.Owner], weight,
				ListedObstacle{Owner: h.Owner, Token: h.Token},
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
	case h.Cooldown || !h.Named || h.Owner == w.Owner || l.waits[h.Owner] == 0, info.Kind == driver.KindRWMutex &&
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
func (l *lockList) behind(info *driver.LockInfo, at int, wants *Wait[ListedWait, ListedObstacle]) {
	for _, v := range info.Waiters[max(0, at-mostAhead):at] {
		if v.Named && v.Owner != wants.What.Owner && v.Position > 0 {
			thing := ListedObstacle{Owner: v.Owner, Ahead: true, Since: v.Since}
			wants.By = append(wants.By, Obstacle[ListedObstacle]{l.number[v.Owner], wants.Spare + 1, thing})
		}
	}
}
