// Locks as ls, get, watch, graph and break read them from the engine, and as ls and get print them for programs.
// table.go prints them for people. The JSON is an interface: a field keeps its name and meaning within a schemaVersion
// (report.go).

package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// lockObject is one lock for programs to read. Instants that the engine does not tell are left out.
//
// It is not the library's LockInfo, because a new field there must not change the output by accident.
type lockObject struct {
	Kind    driver.Kind    `json:"kind"`
	Name    string         `json:"name"`
	Limit   int            `json:"limit,omitempty"`
	Holders []holderObject `json:"holders"`
	Waiters []waiterObject `json:"waiters"` // null on engines that do not tell

	Unreadable string `json:"unreadable,omitempty"` // why no more is known; see driver.LockInfo
}

// holderObject is one holder of it.
type holderObject struct {
	Client string    `json:"client,omitempty"`
	Owner  string    `json:"owner,omitempty"`
	Label  string    `json:"label,omitempty"`
	Token  uint64    `json:"token,string"` // as a string: it can be larger than what JavaScript and jq keep exact
	Weight int       `json:"weight,omitempty"`
	Shared bool      `json:"shared"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`

	Resting  bool `json:"resting,omitempty"`  // its owner is done, and it only keeps others out for a while
	Retained bool `json:"retained,omitempty"` // nobody holds it, and its client gives it back when another asks
}

// waiterObject is one waiter.
type waiterObject struct {
	Client   string    `json:"client,omitempty"`
	Owner    string    `json:"owner,omitempty"`
	Label    string    `json:"label,omitempty"`
	Weight   int       `json:"weight,omitempty"`
	Shared   bool      `json:"shared"`
	Since    time.Time `json:"since,omitzero"`
	Position int       `json:"position,omitempty"`
}

// locksObject is what ls and get print. truncated is there because the list is printed even if the engine failed in the
// middle: a reader must not take half a list for the whole.
type locksObject struct {
	SchemaVersion int          `json:"schemaVersion"`
	Locks         []lockObject `json:"locks"`
	Truncated     bool         `json:"truncated"` // the engine failed before the end of the list
}

// toObject makes the object of a lock. Empty lists are there as [], so that a program need not tell them from null.
func toObject(l interlock.LockInfo, waitersKnown bool) lockObject {
	o := lockObject{Kind: l.Kind, Name: l.Name, Limit: l.Limit, Holders: []holderObject{}, Unreadable: l.Unreadable}
	if waitersKnown {
		o.Waiters = []waiterObject{}
	}
	for _, h := range l.Holders {
		o.Holders = append(o.Holders, holderObject{
			h.Client, h.Owner, h.Label, h.Token, h.Weight, h.Shared, h.Since,
			h.Until, h.Resting, h.Retained,
		})
	}
	for _, w := range l.Waiters {
		o.Waiters = append(o.Waiters, waiterObject{w.Client, w.Owner, w.Label, w.Weight, w.Shared, w.Since, w.Position})
	}
	return o
}

// listLocks collects the locks whose names start with prefix, within --timeout, and sorts them by name and kind. With
// an error it also returns the locks that came before it.
//
// It collects all before anything is printed, since engines list in an order of their own and tables need all widths.
// The list is no snapshot: a lock may change while the others are read.
func (a *app) listLocks(ctx context.Context, e *engine, prefix string) ([]interlock.LockInfo, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	var locks []interlock.LockInfo
	var failed error
	for l, err := range e.client.List(ctx, prefix) {
		if err != nil {
			failed = explained(ctx, err)
			break
		}
		locks = append(locks, l)
	}
	slices.SortFunc(locks, func(x, y interlock.LockInfo) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind))
	})
	return locks, failed
}

// findLock returns the locks of exactly this name, of every kind if kind is empty, sorted by kind. It costs a look for
// each kind that the engine has, in place of a list of all locks. All looks together have --timeout.
//
// A list of all locks would mean a scan of all keys on Redis, for one name.
func (a *app) findLock(ctx context.Context, e *engine, kind driver.Kind, name string) ([]interlock.LockInfo, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	var found []interlock.LockInfo
	known := e.driver.Traits().Kinds
	slices.Sort(known)
	for _, k := range known {
		if kind != "" && kind != k || k == driver.KindLatch || k == driver.KindCond { // these have no holders
			continue
		}
		l, err := e.client.Look(ctx, k, name)
		if err != nil {
			return nil, explained(ctx, err)
		}
		// Every other name would be "found" too: an engine can look at a lock that nobody has ever taken.
		if len(l.Holders)+len(l.Waiters) > 0 {
			found = append(found, l)
		}
	}
	return found, nil
}

// waitersKnown reports whether the engine tells who waits.
func (e *engine) waitersKnown() bool {
	_, lacks := e.driver.Traits().Lacking(driver.Waiters)
	return !lacks
}

// printLocks prints what ls and get have found.
//
// A list that broke off is printed all the same. The error comes after it, and gives the exit code.
func (a *app) printLocks(e *engine, locks []interlock.LockInfo, truncated bool) error {
	if a.output == text {
		return a.printTable(locks, e.waitersKnown())
	}
	o := locksObject{SchemaVersion: schemaVersion, Locks: []lockObject{}, Truncated: truncated}
	for _, l := range locks {
		o.Locks = append(o.Locks, toObject(l, e.waitersKnown()))
	}
	return a.printJSON(o)
}
