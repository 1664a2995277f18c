package interlock

// The graph of owners that wait, and the search in it. It knows nothing of clients and engines, so deadlock_local.go
// and deadlock_remote.go share it.

// waitGraph is who waits for whom. Its nodes are owners. Each wait of an owner has obstacles: what other owners have in
// its way. An obstacle has a weight, and a wait has some to spare. The wait is hopeless if the obstacles of stuck
// owners weigh more than that. A mutex, a read and a write have nothing to spare, because everything that is in their
// way must go. Permits have the limit minus those asked for, because any that come back will do.
//
// An owner is stuck if all of its waits are hopeless. The set of stuck owners is the largest of which that is true. All
// other owners are assumed to give back all that they have, and to want no more. So a stuck owner stays stuck whatever
// the others do, and no owner is called stuck that another one may still help. What an owner has itself is in the way
// of none of its own waits.
type waitGraph[W, H any] struct {
	// by node, numbered in the order of the owners' names: it may get on whatever the others do
	free       []bool
	waits      []*blockedWait[W, H]
	stuckWaits [][]*blockedWait[W, H] // by node, the waits of stuck owners; made by settle
}

// blockedWait is one wait of an owner.
type blockedWait[W, H any] struct {
	node  int // of the owner that waits
	spare int // the weight that it can leave in its way
	what  W
	by    []obstacle[H]
}

// obstacle is what another owner has, or asks for before it, in the way of a wait.
type obstacle[H any] struct {
	node   int // of the owner that has it
	weight int
	what   H
}

// waitEdge is one wait of a cycle, and the obstacle by which the next owner in the cycle is in its way.
type waitEdge[W, H any] struct {
	*blockedWait[W, H]
	next *obstacle[H]
}

// settle finds out who is stuck. It frees every owner that can get on, then every owner that this helps, and so on;
// whoever is left is stuck. It costs as much as there are obstacles.
func (g *waitGraph[W, H]) settle() {
	type edge struct{ wait, weight int }
	behind := make([][]edge, len(g.free)) // by node, what it is in the way of
	blocked := make([]int, len(g.waits))
	waits := make([]bool, len(g.free))
	var leaving []int
	leave := func(node int) {
		if !g.free[node] {
			g.free[node] = true
			leaving = append(leaving, node)
		}
	}
	// First the owners that are free from the start, that have a wait without enough in its way, or that do not wait.
	for node, free := range g.free {
		if free {
			leaving = append(leaving, node)
		}
	}
	for i, w := range g.waits {
		waits[w.node] = true
		for _, o := range w.by {
			behind[o.node] = append(behind[o.node], edge{i, o.weight})
			blocked[i] += o.weight
		}
		if blocked[i] <= w.spare {
			leave(w.node)
		}
	}
	for node := range g.free {
		if !waits[node] {
			leave(node)
		}
	}
	// Then what they leave behind: each obstacle is taken away once.
	for len(leaving) > 0 {
		node := leaving[len(leaving)-1]
		leaving = leaving[:len(leaving)-1]
		for _, e := range behind[node] {
			if blocked[e.wait] -= e.weight; blocked[e.wait] <= g.waits[e.wait].spare {
				leave(g.waits[e.wait].node)
			}
		}
	}
	g.stuckWaits = make([][]*blockedWait[W, H], len(g.free))
	for _, w := range g.waits {
		if !g.free[w.node] {
			g.stuckWaits[w.node] = append(g.stuckWaits[w.node], w)
		}
	}
}

// stuckIn returns the first obstacle of w that belongs to a stuck owner.
func (g *waitGraph[W, H]) stuckIn(w *blockedWait[W, H]) *obstacle[H] {
	for i := range w.by {
		if !g.free[w.by[i].node] {
			return &w.by[i]
		}
	}
	return nil // cannot be: the wait of a stuck owner has one
}

// cycle returns owners that are stuck because of each other, in the order of waiting and from the first of them by
// name, or nothing. The choice is the same for every client that sees the same graph. settle must have been called.
func (g *waitGraph[W, H]) cycle() []waitEdge[W, H] {
	at := 0
	for at < len(g.free) && g.free[at] {
		at++
	}
	if at == len(g.free) {
		return nil
	}
	var path []waitEdge[W, H]
	visited := make(map[int]int)
	for {
		from, seen := visited[at]
		if seen {
			return rotate(path[from:])
		}
		visited[at] = len(path)
		w := g.stuckWaits[at][0]
		next := g.stuckIn(w)
		path = append(path, waitEdge[W, H]{w, next})
		at = next.node
	}
}

// rotate makes a cycle begin with its first owner.
func rotate[W, H any](path []waitEdge[W, H]) []waitEdge[W, H] {
	first := 0
	for i, s := range path {
		if s.node < path[first].node {
			first = i
		}
	}
	return append(path[first:len(path):len(path)], path[:first]...)
}

// support calls fact for everything on which a cycle rests: each wait of each owner in it, and each obstacle of a stuck
// owner in its way. It goes on in the same way for those owners. The cycle alone is not enough: an owner in it is stuck
// only as long as its other waits are hopeless too.
func (g *waitGraph[W, H]) support(cycle []waitEdge[W, H], fact func(w *blockedWait[W, H], o *obstacle[H])) {
	known := make(map[int]bool)
	var todo []int
	add := func(node int) {
		if !known[node] {
			known[node] = true
			todo = append(todo, node)
		}
	}
	for _, s := range cycle {
		add(s.node)
	}
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		g.facts(node, func(w *blockedWait[W, H], o *obstacle[H]) {
			add(o.node)
			fact(w, o)
		})
	}
}

// facts calls fact for what makes an owner stuck.
func (g *waitGraph[W, H]) facts(node int, fact func(w *blockedWait[W, H], o *obstacle[H])) {
	for _, w := range g.stuckWaits[node] {
		for i := range w.by {
			if o := &w.by[i]; !g.free[o.node] {
				fact(w, o)
			}
		}
	}
}

// seenFacts are the facts of the stuck owners at the last search. A fact is a wait and what is in its way, so it is the
// same only while neither has moved. The zero value has none.
type seenFacts[F comparable] map[F]struct{}

// seenTwice reports whether everything on which cycle rests was in seen, and replaces seen by what is there now. Only
// then have all of them stood still in between. After a true the facts are forgotten: one wait is about to end.
func seenTwice[W, H any, F comparable](
	seen *seenFacts[F], g *waitGraph[W, H], cycle []waitEdge[W, H], fact func(w *blockedWait[W, H], o *obstacle[H]) F,
) bool {
	all := len(cycle) > 0
	g.support(cycle, func(w *blockedWait[W, H], o *obstacle[H]) {
		_, was := (*seen)[fact(w, o)]
		all = all && was
	})
	*seen = nil
	if len(cycle) == 0 || all {
		return all
	}
	*seen = make(seenFacts[F])
	for node := range g.stuckWaits {
		g.facts(node, func(w *blockedWait[W, H], o *obstacle[H]) { (*seen)[fact(w, o)] = struct{}{} })
	}
	return false
}
