// interlock graph: who waits for whom, and cycles in it. The graph is made by package board, which the console and top
// use as well. Everything that it shows comes from one list of locks.

package main

import (
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// It says what the graph cannot show, since an operator may break a lock by what it shows.
const graphLong = `Show who waits for whom: one line for each pair of an owner that waits for a lock and an owner
that holds it. With PREFIX, only locks whose names start with it.

graph marks owners that wait for each other, and prints each such cycle. It asks for each lock
separately, so a cycle may be over when it is shown: look again before you break a lock. It
cannot show what the engine does not know: goroutines that wait behind another one of their own
process, and the holder of a lock that was passed on inside a process since its last renewal.

"(cooldown)" marks a hold that has ended, whose lock stays unavailable for a while (--min-hold,
--lock-delay). Such a lock becomes available by itself, so it is in no cycle.`

// graphCommand describes graph. It has no format for drawing programs; -o json has the edges.
func (a *app) graphCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "graph [PREFIX]",
		Short:             "Show who waits for whom, and cycles",
		Long:              graphLong,
		GroupID:           "look",
		Args:              atMostOne,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.graph(cmd.Context(), firstOr(args, ""))
		},
	}
}

// graph lists the locks and prints their graph. If the list breaks off, what came before is printed, and then the error
// is returned.
//
// An engine that does not tell who waits is refused and not shown as one where nobody waits: that would look like good
// news.
func (a *app) graph(ctx context.Context, prefix string) error {
	e, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	if reason, lacks := e.driver.Traits().Lacking(driver.Waiters); lacks {
		return fmt.Errorf("graph: who waits: %w: %s", interlock.ErrUnsupported, reason)
	}
	// A part of the list still shows the waits in it, so it is printed before the error.
	locks, failed := a.listLocks(ctx, e, prefix)
	if failed != nil && len(locks) == 0 {
		return failed
	}
	g := waitsFor(locks)
	if a.output == asJSON {
		err = a.printJSON(graphObject{schemaVersion, g.Edges, g.Cycles, failed != nil})
	} else {
		err = a.printGraph(g)
	}
	// An error of the write comes first: nobody has read the rest.
	return cmp.Or(err, failed)
}

// graphObject is what graph prints as JSON.
//
// The cycles are in it, though they follow from the edges: a script should not have to search a graph.
type graphObject struct {
	SchemaVersion int          `json:"schemaVersion"`
	Edges         []board.Edge `json:"edges"`
	Cycles        [][]string   `json:"cycles"`    // owners; each waits for the next one, and the last for the first
	Truncated     bool         `json:"truncated"` // the engine failed before the end of the list
}

// endpointText is owner and process. A named owner may be in several processes.
func endpointText(p board.Endpoint) string {
	if p.Owner == "" || p.Client == "" {
		return orDash(cmp.Or(p.Owner, p.Client))
	}
	return printable(p.Owner) + " at " + printable(p.Client)
}

// waitsFor makes the graph of what is held and waited for. Waiters are known here: graph refuses an engine that does
// not tell them.
func waitsFor(locks []interlock.LockInfo) board.Graph {
	shown := make([]board.Lock, 0, len(locks))
	for _, l := range locks {
		shown = append(shown, board.LockOf(l, true))
	}
	return board.WaitsFor(shown)
}

// printGraph prints one line for each edge, and then the cycles. Cycles come last, where a terminal stands after a long
// table.
func (a *app) printGraph(g board.Graph) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WAITER\tNAME\tKIND\tHELD BY\tCYCLE")
	for _, e := range g.Edges {
		mark := "-"
		if e.Cycle {
			mark = "yes"
		}
		holder := endpointText(e.Holder) + inBrackets(stateMark(false, e.Cooldown))
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", endpointText(e.Waiter), printable(e.Name), e.Kind, holder, mark)
	}
	// The table is complete only now: tabwriter needs all lines to find the widths.
	if err := w.Flush(); err != nil {
		return err
	}
	for _, cycle := range g.Cycles {
		if _, err := fmt.Fprintf(a.stdout, "cycle: %s\n", cycleText(cycle)); err != nil {
			return err
		}
	}
	return nil
}
