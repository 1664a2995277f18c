// interlock get: who holds one lock and who waits for it. locks.go finds it, and prints it as JSON.

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
