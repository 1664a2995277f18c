// Locks as ls, get, watch, graph and break read them from the engine; interlock ls and interlock get. table.go prints
// them for people. The JSON is an interface: a field keeps its name and meaning within a schemaVersion (report.go).

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
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

	Cooldown bool `json:"cooldown,omitempty"` // its owner is done, and it only keeps others out for a while
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
			h.Until, h.Cooldown, h.Retained,
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

// lsCommand describes ls. PREFIX is no pattern: a prefix means the same on every engine.
func (a *app) lsCommand() *cobra.Command {
	var olderThan time.Duration
	cmd := &cobra.Command{
		Use:               "ls [PREFIX]",
		Short:             "List locks that are held or waited for",
		Long:              `List locks that are held or waited for. With PREFIX, only those whose names start with it.`,
		GroupID:           "look",
		Args:              atMostOne,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if olderThan < 0 {
				return usage("--older-than %v is negative", olderThan)
			}
			return a.ls(cmd.Context(), firstOr(args, ""), olderThan)
		},
	}
	cmd.Flags().Var(durationOf(&olderThan, 0), "older-than", "only locks that have been held for longer than this")
	return cmd
}

// ls lists the locks and prints them. If the list breaks off, what came before is printed, and then the error is
// returned, so that the exit code shows it.
//
// --older-than is applied here and not by the engine, whose list knows a prefix and nothing else.
func (a *app) ls(ctx context.Context, prefix string, olderThan time.Duration) error {
	e, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	locks, failed := a.listLocks(ctx, e, prefix)
	// Nothing came before the error, so there is no table to print.
	if failed != nil && len(locks) == 0 {
		return failed
	}
	if olderThan > 0 {
		// The engine's clock gave Since, so the two clocks' difference is in the comparison; --older-than is for
		// minutes and hours.
		limit := time.Now().Add(-olderThan)
		// Such locks are held, maybe for long, and would be missing without a word.
		if a.output == text && slices.ContainsFunc(locks, ageUnknown) {
			a.say("warning: --older-than leaves out locks of which this engine does not tell since when they are held")
		}
		locks = slices.DeleteFunc(locks, func(l interlock.LockInfo) bool { return !heldSince(l, limit) })
	}
	if err := a.printLocks(e, locks, failed != nil); err != nil {
		return err
	}
	return failed
}

// heldSince reports whether somebody has held l since limit or longer. Any holder counts, also a reader among many: an
// old read keeps writers out as an old write does.
func heldSince(l interlock.LockInfo, limit time.Time) bool {
	return slices.ContainsFunc(l.Holders, func(h driver.Holder) bool {
		return !h.Since.IsZero() && h.Since.Before(limit)
	})
}

// ageUnknown reports whether the engine does not tell how long somebody has held l. etcd is such an engine
// (docs/operations.md).
func ageUnknown(l interlock.LockInfo) bool {
	return slices.ContainsFunc(l.Holders, func(h driver.Holder) bool { return h.Since.IsZero() })
}

// firstOr returns the argument of a command that may have one.
func firstOr(args []string, otherwise string) string {
	if len(args) > 0 {
		return args[0]
	}
	return otherwise
}

// getCommand describes get. Without --kind it shows every kind of lock of that name: an operator seldom knows which
// kind a program uses.
func (a *app) getCommand() *cobra.Command {
	var kind kindFlag
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show who holds a lock and who waits for it",
		Long: `Show who holds the lock NAME and who waits for it.

The exit code is 0 if the lock is held or waited for, and 1 if it is free.`,
		GroupID:           "look",
		Args:              oneName,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.get(cmd.Context(), driver.Kind(kind), args[0])
		},
	}
	addKindFlag(cmd, &kind, "only locks of this kind")
	return cmd
}

// get finds the locks of that name and prints them. A free lock is no error, but ends with exit code 1, for scripts.
//
// A script that must tell a free lock from an engine out of reach compares with 1, since the latter is 69.
func (a *app) get(ctx context.Context, kind driver.Kind, name string) error {
	e, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	found, err := a.findLock(ctx, e, kind, name)
	if err != nil {
		return err
	}
	// JSON says the same by an empty list; the exit code is 1 all the same.
	if a.output == asJSON {
		err = a.printLocks(e, found, false)
	} else {
		err = a.printDetails(e, name, found)
	}
	// The exit code tells a script whether the lock is free.
	if err == nil && len(found) == 0 {
		return silently(exitNone)
	}
	return err
}

// printDetails prints locks for people, with ages in place of instants. Token and lease have a line of their own,
// because names and labels may be long.
func (a *app) printDetails(e *engine, name string, found []interlock.LockInfo) error {
	var b strings.Builder
	if len(found) == 0 {
		fmt.Fprintf(&b, "%s is free\n", printable(name))
	}
	now := time.Now()
	for _, l := range found {
		fmt.Fprintf(&b, "%s (%s)\n", printable(l.Name), l.Kind)
		for _, h := range l.Holders {
			// Every state has eight characters or fewer, so the names of all holders begin in one column.
			state := cmp.Or(stateMark(h.Retained, h.Cooldown), "held by")
			fmt.Fprintf(&b, "  %-8s %s\n", state, who(h.Client, h.Owner, h.Label))
			// The token stands in every line, because break asks for it.
			details := []string{"token " + tokenOrDash(h.Token)}
			if !h.Since.IsZero() { // some engines know neither this instant nor the next
				details = slices.Insert(details, 0, "for "+age(h.Since, now))
			}
			if !h.Until.IsZero() {
				details = append(details, fmt.Sprintf("lease ends in %s unless renewed", short(h.Until.Sub(now))))
			}
			fmt.Fprintf(&b, "           %s\n", strings.Join(details, ", "))
		}
		// In the order of the queue, as the engine tells it.
		for _, w := range l.Waiters {
			fmt.Fprintf(&b, "  waiting  %s%s\n", who(w.Client, w.Owner, w.Label), forAge(w.Since, now))
		}
		// An empty place would look like an empty queue.
		if !e.waitersKnown() {
			b.WriteString("  waiting  not told by this engine\n")
		}
	}
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

// who names a holder or a waiter. Labels and names come from other processes, so control characters in them are not
// printed as such.
//
// The client comes first, because it leads to the process: host and process id.
func who(client, owner, label string) string {
	s := orDash(client)
	if owner != "" {
		s += " (owner " + printable(owner) + ")"
	}
	if label != "" {
		s += " " + printable(label)
	}
	return s
}
