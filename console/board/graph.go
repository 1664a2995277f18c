package board

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// Graph says who waits for whom.
type Graph struct {
	// Edges are all pairs of a waiter and a holder that is in its way.
	Edges []Edge
	// Cycles are owners, one cycle of each group that has any; each waits for the next one, the last for the first.
	Cycles [][]string
}

// Edge is one owner who waits for a lock that another holds.
type Edge struct {
	Kind   driver.Kind `json:"kind"`   // of the lock
	Name   string      `json:"name"`   // of the lock
	Waiter Endpoint    `json:"waiter"` // who waits
	Holder Endpoint    `json:"holder"` // who is in the way
	Cycle  bool        `json:"cycle"`  // part of a cycle

	// Cooldown says that the holder is done, and the lock only stays closed for a while (LockOptions.MinHold,
	// LockDelay).
	Cooldown bool `json:"cooldown,omitempty"`
}

// Endpoint is an owner, and the process that it is in. A named owner may be in several.
type Endpoint struct {
	Owner  string `json:"owner,omitempty"`  // the id of the owner; empty if it is not known
	Client string `json:"client,omitempty"` // the name of its client: Options.ClientName
}

// owned reports whether an owner waits for another to go on. Processes that wait for each other mean nothing: each has
// many owners. A lock that rests opens by itself, whatever the owner that held it waits for.
func (e *Edge) owned() bool { return !e.Cooldown && e.Waiter.Owner != "" && e.Holder.Owner != "" }

// WaitsFor makes the graph of what is held and waited for. It has an edge for each pair of a waiter and a holder that
// is in its way. Each lock was looked at by itself, so a cycle may be over already.
func WaitsFor(locks []Lock) Graph {
	g, _ := graphOf(locks, 0)
	return g
}

// graph is the edges, and for each owner those for whom it waits.
type graph struct {
	edges []Edge
	next  map[string][]string
	group map[string]string // owners that reach each other have the same
}

// graphOf makes the graph of at most that many edges, or of all if most is 0, and reports whether there are more.
func graphOf(locks []Lock, most int) (_ Graph, more bool) {
	g := &graph{edges: []Edge{}, next: make(map[string][]string)}
	more = g.addEdges(locks, most)
	for i := range g.edges {
		if e := &g.edges[i]; e.owned() {
			g.next[e.Waiter.Owner] = append(g.next[e.Waiter.Owner], e.Holder.Owner)
		}
	}
	g.findGroups()
	for i := range g.edges {
		e := &g.edges[i]
		e.Cycle = e.owned() && g.group[e.Waiter.Owner] == g.group[e.Holder.Owner]
	}
	return Graph{g.edges, g.cycles()}, more
}

func (g *graph) addEdges(locks []Lock, most int) (more bool) {
	for i := range locks {
		l := &locks[i]
		for j := range l.Waiters {
			for k := range l.Holders {
				w, h := &l.Waiters[j], &l.Holders[k]
				if !inTheWay(l.Kind, w, h) {
					continue
				}
				if most > 0 && len(g.edges) == most {
					return true
				}
				g.edges = append(g.edges, Edge{
					Kind: l.Kind, Name: l.Name, Waiter: Endpoint{w.Owner, w.Client},
					Holder: Endpoint{h.Owner, h.Client}, Cooldown: h.Cooldown,
				})
			}
		}
	}
	return false
}

// inTheWay reports whether w waits for h. Readers do not wait for each other, but for a writer that is in front of
// them, and an owner does not wait for itself: that is an upgrade, which waits for the others. Its own hold of before
// may rest, though.
func inTheWay(kind driver.Kind, w *Waiter, h *Holder) bool {
	if kind == driver.KindRWMutex && w.Shared && h.Shared {
		return false
	}
	return h.Cooldown || w.Owner == "" || w.Owner != h.Owner
}

// findGroups gives owners that reach each other the same group (Tarjan, "Depth-first search and linear graph
// algorithms", 1972).
func (g *graph) findGroups() {
	g.group = make(map[string]string)
	index, low := make(map[string]int), make(map[string]int)
	var stack []string
	var visit func(n string)
	visit = func(n string) {
		index[n], low[n] = len(index)+1, len(index)+1
		stack = append(stack, n)
		for _, m := range g.next[n] {
			if index[m] == 0 {
				visit(m)
				low[n] = min(low[n], low[m])
			} else if g.group[m] == "" {
				low[n] = min(low[n], index[m])
			}
		}
		if low[n] != index[n] {
			return
		}
		for g.group[n] == "" {
			last := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			g.group[last] = n
		}
	}
	for i := range g.edges {
		if e := &g.edges[i]; e.owned() && index[e.Waiter.Owner] == 0 {
			visit(e.Waiter.Owner)
		}
	}
}

// cycles returns one cycle of each group that has any.
func (g *graph) cycles() [][]string {
	all := [][]string{}
	done := make(map[string]bool)
	for i := range g.edges {
		from := g.edges[i].Waiter.Owner
		if !g.edges[i].Cycle || done[g.group[from]] {
			continue
		}
		done[g.group[from]] = true
		var path []string
		for at := from; ; {
			if i := slices.Index(path, at); i >= 0 {
				all = append(all, path[i:])
				break
			}
			path = append(path, at)
			at = g.next[at][slices.IndexFunc(g.next[at], func(n string) bool { return g.group[n] == g.group[from] })]
		}
	}
	return all
}
