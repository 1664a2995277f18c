// interlock watch: changes of locks, one line each. locks.go lists the locks; package board finds the changes, as for
// top and the console. It asks the engine again and again. Only Redis has notifications, and one that was lost would be
// a wrong picture (docs/rationale.md, The console).

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// watchCommand describes watch. It ends by a signal, as tail -f does, or when its reader closes the pipe.
func (a *app) watchCommand() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print changes of locks as they are seen",
		Long: `Print who holds locks and who waits for them, and then every change, until a signal ends it.
With PREFIX, only locks whose names start with it. With -o json each change is one
object on a line.

watch asks the engine every --interval. A lock that is held for less than that may never be
seen.

The changes are those of the console and of top:
  held      an owner got the lock
  released  a holder is gone before the end of its lease: it released the lock, was broken or cut off
  ended     a holder is gone, and its lease had ended
  waiting   an owner began to wait
  left      an owner stopped waiting without getting the lock

A lock that no owner holds any more, because it is in its cooldown or retained, counts as released.`,
		GroupID:           "look",
		Args:              atMostOne,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkInterval(interval); err != nil {
				return err
			}
			return a.watch(cmd.Context(), firstOr(args, ""), interval)
		},
	}
	cmd.Flags().Var(durationOf(&interval, time.Second), "interval", "pause between two requests to the engine")
	return cmd
}

// change is something that watch saw, as JSON.
//
// The time is that of the look and not of the change, which lies somewhere since the look before.
type change struct {
	SchemaVersion int             `json:"schemaVersion"`
	Time          time.Time       `json:"time"`
	Event         board.EventKind `json:"event"` // held, released, ended, waiting or left
	Kind          driver.Kind     `json:"kind"`
	Name          string          `json:"name"`
	Client        string          `json:"client,omitempty"`
	Owner         string          `json:"owner,omitempty"`
	Label         string          `json:"label,omitempty"`
	Token         uint64          `json:"token,string,omitempty"`
	Why           string          `json:"why,omitempty"` // what else is known of the reason
}

// watch looks until ctx ends. If the engine does not answer the first time, that is an error; later it is told once and
// watching goes on, because it is most interesting when something goes wrong. Changes that happened meanwhile are found
// by the next look that succeeds.
//
// It has no poller, as top has: there is one reader, and no screen that must answer meanwhile.
func (a *app) watch(ctx context.Context, prefix string, interval time.Duration) error {
	e, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	// The first look is outside the loop, because its error ends watch.
	seen, err := a.lookOnce(ctx, e, prefix)
	if err != nil {
		return err
	}
	// At the start everything is new, so what is held and waited for is printed as changes from nothing.
	if err := a.printEvents(board.Changes(nil, seen, time.Now())); err != nil {
		return err
	}
	return a.watchOn(ctx, e, prefix, interval, seen)
}

// watchOn prints the changes since seen, look by look.
func (a *app) watchOn(
	ctx context.Context, e *engine, prefix string, interval time.Duration, seen []board.Lock,
) error {
	// A ticker drops ticks while a look is slow, so looks never pile up.
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		// Only tests end it by the context; a signal ends the process, which holds nothing.
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		fresh, err := a.lookOnce(ctx, e, prefix)
		if err != nil {
			// The error is told once. It would be the same every --interval, and hide the changes.
			if !failing && ctx.Err() == nil {
				a.tellError(err)
			}
			failing = true
			continue
		}
		failing = false
		if err := a.printEvents(board.Changes(seen, fresh, time.Now())); err != nil {
			return err
		}
		seen = fresh
	}
}

// lookOnce lists the locks as a board does, by name and kind.
//
// The list is that of a board, so that board.Changes finds the same changes as for top and the console.
func (a *app) lookOnce(ctx context.Context, e *engine, prefix string) ([]board.Lock, error) {
	found, err := a.listLocks(ctx, e, prefix)
	if err != nil {
		return nil, err
	}
	locks := make([]board.Lock, 0, len(found))
	for _, l := range found {
		locks = append(locks, board.LockOf(l, e.waitersKnown()))
	}
	return locks, nil
}

// printEvents prints a line for each event. It returns the error of a write, which ends watch: nobody reads any more.
// All events of one look have one time.
func (a *app) printEvents(events []board.Event) error {
	now := time.Now()
	for i := range events {
		if err := a.printEvent(&events[i], now); err != nil {
			return err
		}
	}
	return nil
}

// printEvent prints one event. The word is padded to the longest of them, so that names stand below each other.
func (a *app) printEvent(e *board.Event, now time.Time) error {
	if a.output == asJSON {
		return a.printJSON(change{
			schemaVersion, now, e.Event, e.Kind, e.Name, e.Client, e.Owner, e.Label, e.Token, e.Why,
		})
	}
	// The instant is without a date: watch is read while it runs, and the JSON has the whole one.
	line := fmt.Sprintf("%s  %-8s  %s (%s)  %s", now.Format(time.TimeOnly), e.Event, printable(e.Name), e.Kind,
		who(e.Client, e.Owner, e.Label))
	if e.Token != 0 {
		line += ", token " + utoa(e.Token)
	}
	if e.Why != "" {
		line += ": " + e.Why
	}
	_, err := fmt.Fprintln(a.stdout, line)
	return err
}
