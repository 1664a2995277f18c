package interlock

// waitGraph is who waits for whom, as the searches for deadlocks see it. Its nodes are owners. Each wait of an owner
// has obstacles, what other owners have in its way. An obstacle has a weight, and the wait has some to spare: it is
// hopeless if the obstacles of those who are stuck themselves weigh more. A mutex, a read and a write have nothing to
// spare, because everything that is in their way must go; permits have the limit less those asked for, because any that
// come back will do.
//
// An owner is stuck if all of its waits are hopeless. So whoever is stuck stays so whatever all others do, and nobody
// is called stuck whom an owner that may get on could help: the others are taken to give back all that they have, and
// to want no more. What an owner has itself is in the way of none of its own waits.
type waitGraph[W, H any] struct {
	free       []bool // by node, numbered in the order of the owners' names: it may get on whatever the others do
	waits      []*blockedWait[W, H]
	stuckWaits [][]*blockedWait[W, H] // by node, of those who are stuck; made by settle
}

// blockedWait is one wait of an owner.
type blockedWait[W, H any] struct {
	node  int
	spare int
	what  W
	by    []obstacle[H]
}

// obstacle is what another owner has, or asks for before it, that is in the way of a wait.
type obstacle[H any] struct {
	node   int
	weight int
	what   H
}

// waitEdge is one wait of a cycle, and the obstacle of it by which the next owner in the cycle is in its way.
type waitEdge[W, H any] struct {
	*blockedWait[W, H]
	next *obstacle[H]
}

// settle finds out who is stuck: it frees everybody who can get on, then whomever that helps, and so on. It costs as
// much as there are obstacles.
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

// stuckIn returns the first obstacle of w that is a stuck owner's.
func (g *waitGraph[W, H]) stuckIn(w *blockedWait[W, H]) *obstacle[H] {
	for i := range w.by {
		if !g.free[w.by[i].node] {
			return &w.by[i]
		}
	}
	return nil // cannot be of a wait of who is stuck
}

// cycle returns owners that are stuck because of each other, in the order of waiting and from the first of them by
// name; or nothing. settle must have been called.
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

// rotate begins a cycle with its first owner.
func rotate[W, H any](path []waitEdge[W, H]) []waitEdge[W, H] {
	first := 0
	for i, s := range path {
		if s.node < path[first].node {
			first = i
		}
	}
	return append(path[first:len(path):len(path)], path[:first]...)
}

// support calls fact for everything that a cycle rests on: each wait of each owner in it, each obstacle of a stuck
// owner in its way, and so on for those owners.
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

// seenFacts are what made the stuck owners so at the last look. A fact is a wait and what is in its way, so it is the
// same only while neither has moved. The zero value has seen nothing.
type seenFacts[F comparable] map[F]struct{}

// seenTwice reports whether all that cycle rests on was in seen, which it replaces by what is there now.
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
