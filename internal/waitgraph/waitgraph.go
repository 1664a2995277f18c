// Package waitgraph finds owners that wait for each other: the graph, and the search in it. It knows nothing of clients
// and engines. docs/rationale.md, Deadlocks, has the decision.
package waitgraph

import (
	"fmt"
	"slices"
	"strings"
)

// Graph is who waits for whom. Its nodes are owners. Each wait of an owner has obstacles: what other owners have in
// its way. An obstacle has a weight, and a wait has some to spare. The wait is hopeless if the obstacles of stuck
// owners weigh more than that. A mutex, a read and a write have nothing to spare, because everything that is in their
// way must go. Permits have the limit minus those asked for, because any that come back will do.
//
// An owner is stuck if all of its waits are hopeless. The set of stuck owners is the largest of which that is true. All
// other owners are assumed to give back all that they have, and to want no more. So a stuck owner stays stuck whatever
// the others do, and no owner is called stuck that another one may still help. What an owner has itself is in the way
// of none of its own waits.
type Graph[W, H any] struct {
	// by node, numbered in the order of the owners' names: it may get on whatever the others do
	Free       []bool
	Waits      []*Wait[W, H]
	stuckWaits [][]*Wait[W, H] // by node, the waits of stuck owners; made by settle
}

// Wait is one wait of an owner.
type Wait[W, H any] struct {
	Node  int // of the owner that waits
	Spare int // the weight that it can leave in its way
	What  W
	By    []Obstacle[H]
}

// Obstacle is what another owner has, or asks for before it, in the way of a wait.
type Obstacle[H any] struct {
	Node   int // of the owner that has it
	Weight int
	What   H
}

// Edge is one wait of a cycle, and the obstacle by which the next owner in the cycle is in its way.
type Edge[W, H any] struct {
	*Wait[W, H]
	Next *Obstacle[H]
}

// Settle finds out who is stuck. It frees every owner that can get on, then every owner that this helps, and so on;
// whoever is left is stuck. It costs as much as there are obstacles.
func (g *Graph[W, H]) Settle() {
	type edge struct{ wait, weight int }
	behind := make([][]edge, len(g.Free)) // by node, what it is in the way of
	blocked := make([]int, len(g.Waits))
	waits := make([]bool, len(g.Free))
	var leaving []int
	leave := func(node int) {
		if !g.Free[node] {
			g.Free[node] = true
			leaving = append(leaving, node)
		}
	}
	// First the owners that are free from the start, that have a wait without enough in its way, or that do not wait.
	for node, free := range g.Free {
		if free {
			leaving = append(leaving, node)
		}
	}
	for i, w := range g.Waits {
		waits[w.Node] = true
		for _, o := range w.By {
			behind[o.Node] = append(behind[o.Node], edge{i, o.Weight})
			blocked[i] += o.Weight
		}
		if blocked[i] <= w.Spare {
			leave(w.Node)
		}
	}
	for node := range g.Free {
		if !waits[node] {
			leave(node)
		}
	}
	// Then what they leave behind: each obstacle is taken away once.
	for len(leaving) > 0 {
		node := leaving[len(leaving)-1]
		leaving = leaving[:len(leaving)-1]
		for _, e := range behind[node] {
			if blocked[e.wait] -= e.weight; blocked[e.wait] <= g.Waits[e.wait].Spare {
				leave(g.Waits[e.wait].Node)
			}
		}
	}
	g.stuckWaits = make([][]*Wait[W, H], len(g.Free))
	for _, w := range g.Waits {
		if !g.Free[w.Node] {
			g.stuckWaits[w.Node] = append(g.stuckWaits[w.Node], w)
		}
	}
}

// stuckIn returns the first obstacle of w that belongs to a stuck owner.
func (g *Graph[W, H]) stuckIn(w *Wait[W, H]) *Obstacle[H] {
	for i := range w.By {
		if !g.Free[w.By[i].Node] {
			return &w.By[i]
		}
	}
	return nil // cannot be: the wait of a stuck owner has one
}

// Cycle returns owners that are stuck because of each other, in the order of waiting and from the first of them by
// name, or nothing. The choice is the same for every client that sees the same graph. settle must have been called.
func (g *Graph[W, H]) Cycle() []Edge[W, H] {
	at := 0
	for at < len(g.Free) && g.Free[at] {
		at++
	}
	if at == len(g.Free) {
		return nil
	}
	var path []Edge[W, H]
	visited := make(map[int]int)
	for {
		from, seen := visited[at]
		if seen {
			return rotate(path[from:])
		}
		visited[at] = len(path)
		w := g.stuckWaits[at][0]
		next := g.stuckIn(w)
		path = append(path, Edge[W, H]{w, next})
		at = next.Node
	}
}

// rotate makes a cycle begin with its first owner.
func rotate[W, H any](path []Edge[W, H]) []Edge[W, H] {
	first := 0
	for i, s := range path {
		if s.Node < path[first].Node {
			first = i
		}
	}
	return append(path[first:len(path):len(path)], path[:first]...)
}

// support calls fact for everything on which a cycle rests: each wait of each owner in it, and each obstacle of a stuck
// owner in its way. It goes on in the same way for those owners. The cycle alone is not enough: an owner in it is stuck
// only as long as its other waits are hopeless too.
func (g *Graph[W, H]) support(cycle []Edge[W, H], fact func(w *Wait[W, H], o *Obstacle[H])) {
	known := make(map[int]bool)
	var todo []int
	add := func(node int) {
		if !known[node] {
			known[node] = true
			todo = append(todo, node)
		}
	}
	for _, s := range cycle {
		add(s.Node)
	}
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		g.facts(node, func(w *Wait[W, H], o *Obstacle[H]) {
			add(o.Node)
			fact(w, o)
		})
	}
}

// facts calls fact for what makes an owner stuck.
func (g *Graph[W, H]) facts(node int, fact func(w *Wait[W, H], o *Obstacle[H])) {
	for _, w := range g.stuckWaits[node] {
		for i := range w.By {
			if o := &w.By[i]; !g.Free[o.Node] {
				fact(w, o)
			}
		}
	}
}

// Facts are the facts of the stuck owners at the last search. A fact is a wait and what is in its way, so it is the
// same only while neither has moved. The zero value has none.
type Facts[F comparable] map[F]struct{}

// SeenTwice reports whether everything on which cycle rests was in seen, and replaces seen by what is there now. Only
// then have all of them stood still in between. After a true the facts are forgotten: one wait is about to end.
func SeenTwice[W, H any, F comparable](
	seen *Facts[F], g *Graph[W, H], cycle []Edge[W, H], fact func(w *Wait[W, H], o *Obstacle[H]) F,
) bool {
	all := len(cycle) > 0
	g.support(cycle, func(w *Wait[W, H], o *Obstacle[H]) {
		_, was := (*seen)[fact(w, o)]
		all = all && was
	})
	*seen = nil
	if len(cycle) == 0 || all {
		return all
	}
	*seen = make(Facts[F])
	for node := range g.stuckWaits {
		g.facts(node, func(w *Wait[W, H], o *Obstacle[H]) { (*seen)[fact(w, o)] = struct{}{} })
	}
	return false
}

// Describe tells a cycle in words, from the wait of the victim on. says returns each waiter, its lock, and the owner in
// its way.
func Describe[W, H any](
	found []Edge[W, H], victim *Wait[W, H], says func(Edge[W, H]) (who, waits string),
) string {
	from := slices.IndexFunc(found, func(s Edge[W, H]) bool { return s.Wait == victim })
	var b strings.Builder
	for i := range found {
		who, waits := says(found[(from+i)%len(found)])
		if i > 0 {
			b.WriteString(", who ")
		} else {
			fmt.Fprintf(&b, "owner %s ", who)
		}
		b.WriteString(waits)
	}
	return b.String()
}
