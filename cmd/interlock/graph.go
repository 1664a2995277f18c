package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

const graphLong = `Show who waits for whom: one line for each owner who waits for a lock and each owner who holds it.

Owners that wait for each other are marked, and each such cycle is written out. Each lock is looked at by itself, so a cycle
may be over by the time it is shown: look again before you break anything. What the engine does not know is not shown: goroutines
that wait behind another of their own process, and who holds a lock that was passed on inside a process since its last
renewal.

"(over, rests)" marks a hold that has ended and whose lock only stays closed for a while (--min-hold, --lock-delay). Such a lock
opens by itself, so it is in no cycle.`

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

func (a *app) graph(ctx context.Context, prefix string) error {
	e, err := a.open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	if reason, lacks := e.driver.Traits().Lacking(driver.Waiters); lacks {
		return fmt.Errorf("graph: who waits: %w: %s", interlock.ErrUnsupported, reason)
	}
	locks, failed := a.listLocks(ctx, e, prefix)
	if failed != nil && len(locks) == 0 {
		return failed
	}
	g := waitsFor(locks)
	if a.output == asJSON {
		err = a.printJSON(graphObject{schemaVersion, g.edges, g.cycles(), failed != nil})
	} else {
		err = a.printGraph(g)
	}
	return cmp.Or(err, failed)
}

// graphObject is what graph prints.
type graphObject struct {
	SchemaVersion int         `json:"schemaVersion"`
	Edges         []graphEdge `json:"edges"`
	Cycles        [][]string  `json:"cycles"`    // owners; each waits for the next one, and the last for the first
	Truncated     bool        `json:"truncated"` // the engine failed before the end of the list
}

// graphEdge is one owner who waits for a lock that another holds.
type graphEdge struct {
	Kind   driver.Kind `json:"kind"`
	Name   string      `json:"name"`
	Waiter endpoint    `json:"waiter"`
	Holder endpoint    `json:"holder"`
	Cycle  bool        `json:"cycle"` // part of a cycle

	// Resting says that the holder is done, and the lock only stays closed for a while (--min-hold, --lock-delay).
	Resting bool `json:"resting,omitempty"`
}

type endpoint struct {
	Owner  string `json:"owner,omitempty"`
	Client string `json:"client,omitempty"`
}

// owned reports whether an owner waits for another to go on. Processes that wait for each other mean nothing: each has
// many owners. A lock that rests opens by itself, whatever the owner that held it waits for.
func (e graphEdge) owned() bool { return !e.Resting && e.Waiter.Owner != "" && e.Holder.Owner != "" }

// String is owner and process. A named owner may be in several.
func (p endpoint) String() string {
	if p.Owner == "" || p.Client == "" {
		return orDash(cmp.Or(p.Owner, p.Client))
	}
	return printable(p.Owner) + " at " + printable(p.Client)
}

// graph is the edges, and for each owner those for whom it waits.
type graph struct {
	edges []graphEdge
	next  map[string][]string
	group map[string]string // owners that reach each other have the same
}

// waitsFor makes the graph of what is held and waited for.
func waitsFor(locks []interlock.LockInfo) *graph {
	g := &graph{edges: []graphEdge{}, next: make(map[string][]string)}
	for _, l := range locks {
		for _, w := range l.Waiters {
			for _, h := range l.Holders {
				if inTheWay(l.Kind, w, h) {
					g.edges = append(g.edges, graphEdge{
						Kind: l.Kind, Name: l.Name, Waiter: endpoint{w.Owner, w.Client},
						Holder: endpoint{h.Owner, h.Client}, Resting: h.Resting,
					})
				}
			}
		}
	}
	for _, e := range g.edges {
		if e.owned() {
			g.next[e.Waiter.Owner] = append(g.next[e.Waiter.Owner], e.Holder.Owner)
		}
	}
	g.findGroups()
	for i, e := range g.edges {
		g.edges[i].Cycle = e.owned() && g.group[e.Waiter.Owner] == g.group[e.Holder.Owner]
	}
	return g
}

// inTheWay reports whether w waits for h. Readers do not wait for each other, but for a writer that is in front of
// them, and an owner does not wait for itself: that is an upgrade, which waits for the others. Its own hold of before
// may rest, though.
func inTheWay(kind driver.Kind, w driver.Waiter, h driver.Holder) bool {
	if kind == driver.KindRWMutex && w.Shared && h.Shared {
		return false
	}
	return h.Resting || w.Owner == "" || w.Owner != h.Owner
}

// findGroups gives owners that reach each other the same group (Tarjan, "Depth-first search and linear graph
// algorithms", 1972).
func (g *graph) findGroups() {
	g.group = make(map[string]string)
	index, low := make(map[string]int), make(map[string]int)
	var stack []string
	var visit func(n string)
	visit = func(n string) {
		index[n], low[n] = len(index)+1, len(index)+1
		stack = append(stack, n)
		for _, m := range g.next[n] {
			if index[m] == 0 {
				visit(m)
				low[n] = min(low[n], low[m])
			} else if g.group[m] == "" {
				low[n] = min(low[n], index[m])
			}
		}
		if low[n] != index[n] {
			return
		}
		for g.group[n] == "" {
			last := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			g.group[last] = n
		}
	}
	for _, e := range g.edges {
		if e.owned() && index[e.Waiter.Owner] == 0 {
			visit(e.Waiter.Owner)
		}
	}
}

// cycles returns one cycle of each group that has any.
func (g *graph) cycles() [][]string {
	all := [][]string{}
	done := make(map[string]bool)
	for _, e := range g.edges {
		from := e.Waiter.Owner
		if !e.Cycle || done[g.group[from]] {
			continue
		}
		done[g.group[from]] = true
		var path []string
		for at := from; ; {
			if i := slices.Index(path, at); i >= 0 {
				all = append(all, path[i:])
				break
			}
			path = append(path, at)
			at = g.next[at][slices.IndexFunc(g.next[at], func(n string) bool { return g.group[n] == g.group[from] })]
		}
	}
	return all
}

func (a *app) printGraph(g *graph) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WAITER\tNAME\tKIND\tHELD BY\tCYCLE")
	for _, e := range g.edges {
		mark := "-"
		if e.Cycle {
			mark = "yes"
		}
		holder := e.Holder.String()
		if e.Resting {
			holder += " (over, rests)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Waiter, printable(e.Name), e.Kind, holder, mark)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, cycle := range g.cycles() {
		for i, n := range cycle {
			cycle[i] = printable(n)
		}
		if _, err := fmt.Fprintf(a.stdout, "cycle: %s -> %s\n", strings.Join(cycle, " -> "), cycle[0]); err != nil {
			return err
		}
	}
	return nil
}
