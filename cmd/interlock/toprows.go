// The rows of top's table: which locks, in which order. topmodel.go makes them anew with each board and each key that
// changes order or filter. Sorting is by what an operator looks for: who keeps others waiting, who holds for long,
// whose lease is about to end.

package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/console/board"
)

// topOrder is what top sorts locks by.
//
// The words are those of --sort; their first letters are the keys.
type topOrder string

const (
	// The first is the default.
	byWaiters topOrder = "waiters" // the most first
	byAge     topOrder = "age"     // held for the longest first
	byLease   topOrder = "lease"   // the lease that ends next first
	byName    topOrder = "name"
)

// topOrders are all orders, by the key that chooses them.
var topOrders = map[string]topOrder{"w": byWaiters, "a": byAge, "l": byLease, "n": byName}

// String returns the order. It, Set and Type make topOrder a flag.
func (o *topOrder) String() string { return string(*o) }

// Set accepts the orders that exist.
func (o *topOrder) Set(s string) error {
	for _, order := range topOrders {
		if s == string(order) {
			*o = order
			return nil
		}
	}
	return errors.New("must be waiters, age, lease or name")
}

// Type names the value in help texts.
func (o *topOrder) Type() string { return "ORDER" }

// topRow is a lock with what it is sorted by. They are found once for each board, and not in each comparison.
type topRow struct {
	lock         *board.Lock
	since, until time.Time // of the oldest hold and the next end; zero if unknown or not held
}

// topRows are the locks of a board that match a filter, in an order. Locks that are alike stay in the board's order, by
// name, so that rows do not jump from look to look.
//
// A filter is a part of a text and no expression: it is typed in a hurry, and dots in host names should be dots.
func topRows(b *board.Board, order topOrder, filter string) []topRow {
	rows := make([]topRow, 0, len(b.Locks))
	filter = strings.ToLower(filter)
	for i := range b.Locks {
		l := &b.Locks[i]
		if filter != "" && !matches(l, filter) {
			continue
		}
		row := topRow{lock: l}
		for j := range l.Holders {
			row.since = earlier(row.since, l.Holders[j].Since)
			row.until = earlier(row.until, l.Holders[j].Until)
		}
		rows = append(rows, row)
	}
	compare := map[topOrder]func(x, y topRow) int{
		byWaiters: func(x, y topRow) int { return cmp.Compare(len(y.lock.Waiters), len(x.lock.Waiters)) },
		byAge:     func(x, y topRow) int { return compareKnown(x.since, y.since) },
		byLease:   func(x, y topRow) int { return compareKnown(x.until, y.until) },
	}[order]
	if compare != nil { // a board is sorted by name
		slices.SortStableFunc(rows, compare)
	}
	return rows
}

// earlier is the earlier of two instants, of which zero means unknown.
func earlier(x, y time.Time) time.Time {
	if x.IsZero() || !y.IsZero() && y.Before(x) {
		return y
	}
	return x
}

// compareKnown orders instants, with unknown ones at the end. Unknown is not old: engines that tell no age would
// otherwise fill the top of the table.
func compareKnown(x, y time.Time) int {
	if x.IsZero() || y.IsZero() {
		return cmp.Compare(btoi(x.IsZero()), btoi(y.IsZero()))
	}
	return x.Compare(y)
}

// btoi makes a bool comparable: false comes before true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matches reports whether the lock's name or kind, or somebody who holds it or waits for it, contains the text, which
// is in lower case. Waiters count too: the question is often where a process hangs, and not what it has.
func matches(l *board.Lock, text string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), text) })
	}
	return has(l.Name, string(l.Kind)) ||
		slices.ContainsFunc(l.Holders, func(h board.Holder) bool { return has(h.Client, h.Owner, h.Label) }) ||
		slices.ContainsFunc(l.Waiters, func(w board.Waiter) bool { return has(w.Client, w.Owner, w.Label) })
}

// inCycles are the ids of the locks for which owners wait in a cycle.
func inCycles(b *board.Board) map[string]bool {
	ids := map[string]bool{}
	for i := range b.Edges {
		if e := &b.Edges[i]; e.Cycle {
			ids[board.ID(e.Kind, e.Name)] = true
		}
	}
	return ids
}
