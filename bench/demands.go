package main

import (
	"fmt"
	"math"
	"slices"
)

// want is what interlock demands of itself: a number, its ratio to that of another peer, or its growth from another
// scenario. Without a bound it is for the reader to judge.
type want struct {
	peer, unit string
	base       string  // the peer that is compared with; "" if the number itself is bounded
	from       string  // the scenario from which the number may grow
	atLeast    float64 // 0 if there is no bound on this side
	atMost     float64 // likewise
	none       bool    // it must be zero
}

// judged is a want with what was measured.
type judged struct {
	text string
	kept bool
}

func (r rounds) judge(scenario string, w *want) judged {
	x, spread := r.wanted(scenario, w)
	number := times(x)
	if w.base == "" && w.from == "" {
		number = units[w.unit].write(x)
	}
	j := judged{text: fmt.Sprintf("%s: %s%s", w.bound(), number, spread), kept: w.kept(x)}
	if w.none {
		j.text = units[w.unit].head + ": " + number
	}
	if !j.kept {
		j.text += ", **not kept**"
	}
	return j
}

// wanted returns the number that a want is about, and between which bounds it was in single rounds, if it is a ratio.
func (r rounds) wanted(scenario string, w *want) (x float64, spread string) {
	switch {
	case w.from != "":
		x = r.grows(scenario, w, w.peer)
		if w.base != "" {
			x /= r.grows(scenario, w, w.base)
		}
		return x, ""
	case w.base != "":
		q := r.ratio(scenario, w.peer, w.base, w.unit)
		return q.of, fmt.Sprintf(" (%s to %s)", times(q.least), times(q.most))
	default:
		return r.median(scenario, w.peer, w.unit), ""
	}
}

// grows is no number if not all were served: then a time is only the limit.
func (r rounds) grows(scenario string, w *want, peer string) float64 {
	if r.cut(scenario, peer, w.unit) || r.cut(w.from, peer, w.unit) {
		return math.NaN()
	}
	return r.median(scenario, peer, w.unit) / r.median(w.from, peer, w.unit)
}

// bound says what is demanded, if it is not zero.
func (w *want) bound() string {
	write := units[w.unit].write
	if w.base != "" || w.from != "" {
		write = times
	}
	var text string
	if w.atMost > 0 {
		text = "at most " + write(w.atMost)
	} else if w.atLeast > 0 {
		text = "at least " + write(w.atLeast)
	}
	switch {
	case w.from != "" && w.base != "":
		text += " × " + w.from + ", of what " + w.base + " has there"
	case w.from != "":
		text += " × " + w.from
	case w.base != "":
		text += " × " + w.base
	}
	return text
}

// kept is false of what is no number.
func (w *want) kept(x float64) bool {
	if w.none {
		return x == 0
	}
	return !(math.IsNaN(x) || x < w.atLeast || w.atMost > 0 && x > w.atMost)
}

// demands are the wants of a scenario that a row of its table says: those of the row's units, and in the first row also
// those of units that have no row. kept is whether all are kept.
func (r rounds) demands(sc *scenario, row int) (texts []string, kept bool) {
	kept = true
	for i := range sc.wants {
		w := &sc.wants[i]
		own := slices.IndexFunc(sc.shows, func(units []string) bool { return slices.Contains(units, w.unit) })
		if own != row && (own >= 0 || row > 0) {
			continue
		}
		j := r.judge(sc.name, w)
		if !w.none && (own < 0 || len(sc.shows[own]) > 1) {
			j.text = units[w.unit].head + " " + j.text
		}
		if w.peer != sc.own() {
			j.text = w.peer + " " + j.text
		}
		texts, kept = append(texts, j.text), kept && j.kept
	}
	return texts, kept
}
