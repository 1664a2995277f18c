package main

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/bench/workload"
)

// wants compares what was measured with what interlock demands of itself.
func (r *report) wants() [][]string {
	var rows [][]string
	for _, m := range r.measured {
		for _, w := range m.wants {
			x, words := m.wanted(&w)
			rows = append(rows, []string{w.says, w.bound(), words, w.verdict(x)})
		}
		if m.job.Kind == workload.Held {
			rows = append(rows, m.heldWants()...)
		}
	}
	return slices.Concat(rows, r.herdWants(), r.waiterWants())
}

// wanted returns the number that a want is about, and writes it.
func (m *measured) wanted(w *want) (x float64, words string) {
	of := w.of
	if of == nil {
		of = m.value
	}
	if w.base == "" {
		x = m.median(w.peer, of)
		return x, few(x)
	}
	q := m.ratioOf(w.peer, w.base, of)
	return q.Of, ratio(q)
}

func (w *want) bound() string {
	if w.none {
		return "0"
	}
	if w.atMost > 0 {
		return fmt.Sprintf("at most %.3g", w.atMost)
	}
	if w.atLeast > 0 {
		return fmt.Sprintf("at least %.3g", w.atLeast)
	}
	return "no bound"
}

func (w *want) verdict(q float64) string {
	if w.atLeast == 0 && w.atMost == 0 && !w.none {
		return "–"
	}
	return yes(w.kept(q))
}

func (w *want) kept(q float64) bool {
	if w.none {
		return q == 0
	}
	return q >= w.atLeast && (w.atMost == 0 || q <= w.atMost)
}

// What a held lock may cost.
const (
	mostBytes      = 600
	mostGoroutines = 0.01 // for each of very many locks: a handful for the whole client
)

// heldWants are for memlock. What a held lock may weigh is demanded on Redis, where the engine keeps nothing in this heap.
func (m *measured) heldWants() [][]string {
	var rows [][]string
	for _, h := range m.results[workload.EngineMem] {
		r := h.Held
		rows = append(rows,
			[]string{
				"goroutines for each held lock", "0",
				fmt.Sprintf("%.4f", r.Goroutines), yes(r.Goroutines < mostGoroutines),
			},
			[]string{"held locks lost while being renewed", "0", fmt.Sprint(r.Lost), yes(r.Lost == 0)})
	}
	return rows
}
