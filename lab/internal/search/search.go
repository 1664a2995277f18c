package search

import (
	"context"
	"slices"
)

// Bounds say how far a search goes. Programs end by themselves, so that there is no bound on the number of moves.
type Bounds struct {
	Clients int
	Faults  int
}

// Usual are the bounds of the command.
var Usual = Bounds{Clients: 3, Faults: 2}

// Found is a shortest schedule that fails in one way.
type Found struct {
	Kind   Kind
	Moves  []Move
	Faults int
	last   *state // after the last move
}

// Result is what a search has seen.
type Result struct {
	States  int // different ones
	Moves   int // followed, also to states that were known
	Longest int // the length of the longest of the shortest ways to a state
	Found   map[Kind]*Found
}

// node is a state that was seen, as the move that led to it.
type node struct {
	parent int
	move   Move
}

// searcher is a search under way.
type searcher struct {
	e      *Exhibit
	bounds Bounds
	nodes  []node
	seen   map[string]bool
	result *Result
}

// Search looks at all schedules of an exhibit within the bounds, the shortest first. It fails if the exhibit sends what
// the model of Redis does not know.
func Search(ctx context.Context, e *Exhibit, b Bounds) (*Result, error) {
	s := &searcher{e: e, bounds: b, seen: map[string]bool{}, result: &Result{Found: map[Kind]*Found{}}}
	start := &state{clients: make([]client, b.Clients)}
	s.seen[start.key()] = true
	s.nodes = []node{{parent: -1}}
	level := map[int]*state{0: start}
	for order := []int{0}; len(order) > 0; {
		var nextOrder []int
		nextLevel := map[int]*state{}
		for _, i := range order {
			added, err := s.expand(ctx, i, level[i], nextLevel)
			if err != nil {
				return nil, err
			}
			nextOrder = append(nextOrder, added...)
		}
		if order, level = nextOrder, nextLevel; len(order) > 0 {
			s.result.Longest++
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	s.result.States = len(s.nodes)
	return s.result, nil
}

// expand visits the states after one, and returns those that are new.
func (s *searcher) expand(ctx context.Context, i int, from *state, into map[int]*state) ([]int, error) {
	var added []int
	for _, m := range from.moves(s.e, s.bounds.Faults) {
		to, err := from.after(ctx, s.e, m)
		if err != nil {
			return nil, err
		}
		s.result.Moves++
		key := to.key()
		if s.seen[key] {
			continue
		}
		s.seen[key] = true
		s.nodes = append(s.nodes, node{i, m})
		at := len(s.nodes) - 1
		kinds, err := to.judge(ctx, s.e)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			s.found(kind, at, to)
		}
		into[at] = to
		added = append(added, at)
	}
	return added, nil
}

// found keeps the first schedule of each kind, which is a shortest.
func (s *searcher) found(kind Kind, at int, last *state) {
	if s.result.Found[kind] != nil {
		return
	}
	f := &Found{Kind: kind, Faults: last.faults, last: last}
	for ; at > 0; at = s.nodes[at].parent {
		f.Moves = append(f.Moves, s.nodes[at].move)
	}
	slices.Reverse(f.Moves)
	s.result.Found[kind] = f
}
