package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

// table prints a row for each server and way.
type table struct {
	w       *tabwriter.Writer
	stories []string
	wrong   int // rows that are not as they must be
}

func newTable(w io.Writer, n size) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	fmt.Fprintf(t.w, "%d processes with %d goroutines each sell %d items until they see that none is left.\n\n",
		n.processes, n.goroutines, n.stock)
	fmt.Fprintln(t.w, "server\tdeducted with\tprocesses\tsold\tleft\tverdict\t")
	return t
}

// fill sells in all ways at one place.
func (t *table) fill(ctx context.Context, p place, n size) error {
	for _, w := range ways {
		o, err := trade(ctx, p, w, n)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", p.Server, w.name, err)
		}
		t.add(o)
	}
	said, err := stocktaking(ctx, p)
	for _, line := range said {
		t.stories = append(t.stories, p.Server+": "+line)
	}
	return err
}

func (t *table) add(o outcome) {
	if !o.asExpected() {
		t.wrong++
	}
	fmt.Fprintf(t.w, "%s\t%s\t%d\t%d\t%d\t%s\t\n", o.place.Server, o.way.name, o.processes, o.sold, o.left, o.verdict())
}

func (o outcome) verdict() string {
	switch {
	case o.exact():
		if !o.way.sound {
			return "EXACT, which this way must not be able to be"
		}
		return "exact"
	case o.way.sound:
		return fmt.Sprintf("WRONG: %d sold and %d left of %d", o.sold, o.left, o.stock)
	case o.oversold() > 0:
		return fmt.Sprintf("oversells by %d", o.oversold())
	}
	return "WRONG, but not oversold, which this way must be"
}

// fine reports whether every row is as it must be.
func (t *table) fine() bool { return t.wrong == 0 }

func (t *table) flush() {
	if len(t.stories) > 0 {
		fmt.Fprintln(t.w, "\nStocktaking by the difference, in one step:")
	}
	for _, line := range t.stories {
		fmt.Fprintln(t.w, "  "+line)
	}
	_ = t.w.Flush() // an error of standard output has nowhere to be told
}
