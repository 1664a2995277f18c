package interlock

// graph is who waits for whom, as the searches for deadlocks see it: wishes of parties, and what is in the way of each. What of
// the other parties is in the way of a wish has a weight, and the wish has some to spare: it is hopeless if those who are stuck
// themselves weigh more. A mutex, a read and a write have nothing to spare, because everything that is in their way must go;
// permits have the limit less those asked for, because any that come back will do.
//
// A party is stuck if all of its wishes are hopeless. So whoever is stuck stays so whatever all others do, and nobody is called
// stuck whom a party that may get on could help: the others are taken to give back all that they have, and to want no more.
// What a party has itself is in the way of none of its own wishes.
type graph[W, H any] struct {
	free   []bool // by party, numbered in the order of their names: it may get on whatever the others do
	wishes []*wish[W, H]
	of     [][]*wish[W, H] // by party, of those who are stuck; made by settle
}

// wish is one wait of a party.
type wish[W, H any] struct {
	party int
	spare int
	what  W
	by    []obstacle[H]
}

// obstacle is what another party has, or asks for before it, that is in the way of a wish.
type obstacle[H any] struct {
	party  int
	weight int
	what   H
}

// waitStep is one wish of a cycle, and one obstacle that the next party in it is.
type waitStep[W, H any] struct {
	*wish[W, H]
	next *obstacle[H]
}

// settle finds out who is stuck: it frees everybody who can get on, then whomever that helps, and so on. It costs as much as there
// are obstacles.
func (g *graph[W, H]) settle() {
	type edge struct{ wish, weight int }
	behind := make([][]edge, len(g.free)) // by party, what it is in the way of
	blocked := make([]int, len(g.wishes))
	waits := make([]bool, len(g.free))
	var leaving []int
	leave := func(party int) {
		if !g.free[party] {
			g.free[party] = true
			leaving = append(leaving, party)
		}
	}
	for party, free := range g.free {
		if free {
			leaving = append(leaving, party)
		}
	}
	for i, w := range g.wishes {
		waits[w.party] = true
		for _, o := range w.by {
			behind[o.party] = append(behind[o.party], edge{i, o.weight})
			blocked[i] += o.weight
		}
		if blocked[i] <= w.spare {
			leave(w.party)
		}
	}
	for party := range g.free {
		if !waits[party] {
			leave(party)
		}
	}
	for len(leaving) > 0 {
		party := leaving[len(leaving)-1]
		leaving = leaving[:len(leaving)-1]
		for _, e := range behind[party] {
			if blocked[e.wish] -= e.weight; blocked[e.wish] <= g.wishes[e.wish].spare {
				leave(g.wishes[e.wish].party)
			}
		}
	}
	g.of = make([][]*wish[W, H], len(g.free))
	for _, w := range g.wishes {
		if !g.free[w.party] {
			g.of[w.party] = append(g.of[w.party], w)
		}
	}
}

// stuckIn returns the first obstacle that is a stuck party's.
func (g *graph[W, H]) stuckIn(w *wish[W, H]) *obstacle[H] {
	for i := range w.by {
		if !g.free[w.by[i].party] {
			return &w.by[i]
		}
	}
	return nil // cannot be of a wish of who is stuck
}

// cycle returns parties that are stuck because of each other, in the order of waiting and from the first of them by name; or
// nothing. It is for when settle has been called.
func (g *graph[W, H]) cycle() []waitStep[W, H] {
	at := 0
	for at < len(g.free) && g.free[at] {
		at++
	}
	if at == len(g.free) {
		return nil
	}
	var path []waitStep[W, H]
	visited := make(map[int]int)
	for {
		from, seen := visited[at]
		if seen {
			return rotate(path[from:])
		}
		visited[at] = len(path)
		w := g.of[at][0]
		next := g.stuckIn(w)
		path = append(path, waitStep[W, H]{w, next})
		at = next.party
	}
}

// rotate begins a cycle with its first party.
func rotate[W, H any](path []waitStep[W, H]) []waitStep[W, H] {
	first := 0
	for i, s := range path {
		if s.party < path[first].party {
			first = i
		}
	}
	return append(path[first:len(path):len(path)], path[:first]...)
}

// support calls fact for everything that a cycle rests on: each wish of each party of it, each obstacle of a stuck party in its
// way, and so on for those parties.
func (g *graph[W, H]) support(cycle []waitStep[W, H], fact func(w *wish[W, H], o *obstacle[H])) {
	known := make(map[int]bool)
	var todo []int
	add := func(party int) {
		if !known[party] {
			known[party] = true
			todo = append(todo, party)
		}
	}
	for _, s := range cycle {
		add(s.party)
	}
	for len(todo) > 0 {
		party := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		g.facts(party, func(w *wish[W, H], o *obstacle[H]) {
			add(o.party)
			fact(w, o)
		})
	}
}

// facts calls fact for what makes a party stuck.
func (g *graph[W, H]) facts(party int, fact func(w *wish[W, H], o *obstacle[H])) {
	for _, w := range g.of[party] {
		for i := range w.by {
			if o := &w.by[i]; !g.free[o.party] {
				fact(w, o)
			}
		}
	}
}

// twice remembers what makes the stuck ones so, and reports whether all that the cycle rests on was there the last time too. F is
// a wait and what is in its way, so that it is the same only while neither has moved. The zero value has seen nothing.
type twice[F comparable] map[F]struct{}

func lookedTwice[W, H any, F comparable](
	seen *twice[F], g *graph[W, H], cycle []waitStep[W, H], fact func(w *wish[W, H], o *obstacle[H]) F,
) bool {
	all := len(cycle) > 0
	g.support(cycle, func(w *wish[W, H], o *obstacle[H]) {
		_, was := (*seen)[fact(w, o)]
		all = all && was
	})
	*seen = nil
	if len(cycle) == 0 || all {
		return all
	}
	*seen = make(twice[F])
	for party := range g.of {
		g.facts(party, func(w *wish[W, H], o *obstacle[H]) { (*seen)[fact(w, o)] = struct{}{} })
	}
	return false
}
