package main

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

func (a *app) watchCommand() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print changes of locks as they are seen",
		Long: `Print who holds and who waits, and then every change. Looks every --interval, so a lock that is held for less than
that may never be seen. With -o json each change is one object on a line.`,
		GroupID:           "look",
		Args:              atMostOne,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 {
				return usage("--interval %v must be positive", interval)
			}
			return a.watch(cmd.Context(), firstOr(args, ""), interval)
		},
	}
	cmd.Flags().Var(durationOf(&interval, time.Second), "interval", "pause between two looks")
	return cmd
}

// change is something that watch saw.
type change struct {
	SchemaVersion int       `json:"schemaVersion"`
	Time          time.Time `json:"time"`
	// held, released, waiting, or left: stopped waiting, maybe because it holds now
	Event  string      `json:"event"`
	Kind   driver.Kind `json:"kind"`
	Name   string      `json:"name"`
	Client string      `json:"client,omitempty"`
	Owner  string      `json:"owner,omitempty"`
	Label  string      `json:"label,omitempty"`
	Token  uint64      `json:"token,string,omitempty"`
}

// presence is one holder or waiter, as far as it can be told from others between two looks.
type presence struct {
	kind                driver.Kind
	name, client, owner string
	label               string
	holds               bool
	token               uint64
	since               int64
}

// watch looks until ctx ends. An engine that does not answer the first time is an error; later it is only told, because
// watching is most interesting when something goes wrong.
func (a *app) watch(ctx context.Context, prefix string, interval time.Duration) error {
	e, err := a.open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	locks, err := a.listLocks(ctx, e, prefix)
	if err != nil {
		return err
	}
	seen := presences(locks)
	if err := a.printChanges(nil, seen); err != nil {
		return err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		locks, err := a.listLocks(ctx, e, prefix)
		if err != nil {
			if !failing && ctx.Err() == nil {
				a.tellError(err)
			}
			failing = true
			continue
		}
		failing = false
		now := presences(locks)
		if err := a.printChanges(seen, now); err != nil {
			return err
		}
		seen = now
	}
}

// presences lists everybody in a stable order, that of listLocks.
func presences(locks []interlock.LockInfo) []presence {
	var all []presence
	for _, l := range locks {
		for _, h := range l.Holders {
			all = append(all, presence{l.Kind, l.Name, h.Client, h.Owner, h.Label, true, h.Token, instant(h.Since)})
		}
		for _, w := range l.Waiters {
			all = append(all, presence{l.Kind, l.Name, w.Client, w.Owner, w.Label, false, 0, instant(w.Since)})
		}
	}
	return all
}

func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// printChanges prints first who has gone and then who has come, so that a hand-over reads in its order.
func (a *app) printChanges(before, after []presence) error {
	for _, p := range without(before, after) {
		if err := a.printChange(p, map[bool]string{true: "released", false: "left"}[p.holds]); err != nil {
			return err
		}
	}
	for _, p := range without(after, before) {
		if err := a.printChange(p, map[bool]string{true: "held", false: "waiting"}[p.holds]); err != nil {
			return err
		}
	}
	return nil
}

// without returns what is in all and not in those.
func without(all, those []presence) []presence {
	known := make(map[presence]bool, len(those))
	for _, p := range those {
		known[p] = true
	}
	var rest []presence
	for _, p := range all {
		if !known[p] {
			rest = append(rest, p)
		}
	}
	return rest
}

func (a *app) printChange(p presence, event string) error {
	now := time.Now()
	if a.output == asJSON {
		return a.printJSON(change{schemaVersion, now, event, p.kind, p.name, p.client, p.owner, p.label, p.token})
	}
	token := ""
	if p.token != 0 {
		token = ", token " + utoa(p.token)
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %-8s  %s (%s)  %s%s\n", now.Format(time.TimeOnly), event, printable(p.name),
		p.kind,
		who(p.client, p.owner, p.label), token)
	return err
}
