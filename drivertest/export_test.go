package drivertest

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// PromiseRow is a row of the table of promises in docs/writing-an-engine.md.
type PromiseRow struct {
	Promise         Promise
	Means, Contract string
	Needs           string // what it or a part of it is asked only with
}

// PromiseRows returns the rows of all promises, in order.
func PromiseRows() (rows []PromiseRow) {
	for _, p := range promises() {
		rows = append(rows, PromiseRow{p.promise, p.means, p.contract, p.needed()})
	}
	return rows
}

// needed names the features without which p is not examined: first those that all of it needs, then those that a part
// needs.
func (p promised) needed() string {
	var whole, part []string
	add := func(what string, needs func(behaviour) bool) {
		list := &part
		if !slices.ContainsFunc(p.behaviours, func(b behaviour) bool { return !needs(b) }) {
			list = &whole
		}
		if !slices.Contains(*list, what) {
			*list = append(*list, what)
		}
	}
	for _, b := range p.behaviours {
		for _, a := range b.needs {
			add(string(a), func(b behaviour) bool { return slices.Contains(b.needs, a) })
		}
		for _, k := range b.kinds {
			if k != driver.KindMutex {
				add("kind "+string(k), func(b behaviour) bool { return slices.Contains(b.kinds, k) })
			}
		}
		if b.wants != "" {
			_, name, _ := strings.Cut(string(b.wants), "has no ")
			add("`"+name+"`", func(other behaviour) bool { return other.wants == b.wants })
		}
	}
	if len(part) > 0 {
		whole = append(whole, "in part "+strings.Join(part, ", "))
	}
	return strings.Join(whole, "; ")
}
