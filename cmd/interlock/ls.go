// interlock ls: the locks that are held or waited for. locks.go lists and prints them.

package main

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

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
