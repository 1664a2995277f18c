// interlock top: the flags, and whether there is a screen to draw on. toploop.go runs it on one; topmodel.go knows what
// is shown, topview.go and topviews.go draw it. It is in both builds, because package board, which looks for it, has no
// HTTP (docs/rationale.md, The console).

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// topLong is the help of top, without the keys; topHelp follows it.
const topLong = `Show locks on a full screen that is updated every --interval: who holds them, who waits, whose
lease ends next, owners that wait for each other, and what has changed. top needs nothing but a
terminal. With PREFIX, it shows only locks whose names start with it.

top prints one board and ends if stdin or stdout is no terminal, if the terminal cannot move its
cursor (TERM=dumb), with --once, and with -o json. Each update costs as much as one
"interlock ls". A lock that is held for less than --interval may never be seen.

A hold can be broken only with --allow-break, and only after you have typed the name of its
lock. "interlock break --help" says what that means to the holder. NO_COLOR turns colours off.

Keys:
`

// whyNoBreak is why b breaks nothing unless it was allowed.
const whyNoBreak = "top was started without --allow-break"

// topOptions are the flags of top. Without --allow-break top can run on a screen that others watch: no key changes
// anything.
type topOptions struct {
	interval   time.Duration
	order      topOrder
	once       bool
	allowBreak bool
}

// topCommand describes top. The locks with the most waiters stand first: most users look for what is stuck.
func (a *app) topCommand() *cobra.Command {
	o := topOptions{order: byWaiters}
	cmd := &cobra.Command{
		Use:               "top [PREFIX]",
		Short:             "Show locks on the screen, and what changes",
		Long:              topLong + indented(topHelp),
		GroupID:           "look",
		Args:              atMostOne,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkInterval(o.interval); err != nil {
				return err
			}
			return a.top(cmd.Context(), &o, firstOr(args, ""))
		},
	}
	flags := cmd.Flags()
	flags.Var(durationOf(&o.interval, time.Second), "interval", "pause between two requests to the engine")
	flags.Var(&o.order, "sort", "order of the locks: waiters, age, lease or name")
	flags.BoolVar(&o.once, "once", false, "print one board and end")
	flags.BoolVar(&o.allowBreak, "allow-break", false, "allow the key b to break holds")
	completeFlag(cmd, "sort", string(byWaiters), string(byAge), string(byLease), string(byName))
	return cmd
}

// top opens the engine and shows boards until a key or a signal ends it, or prints one if there is no screen. The
// poller asks the engine in a goroutine of its own, so that the screen answers to keys while the engine is slow.
//
// The screen is taken last. Every error before it is printed on the terminal as it was.
func (a *app) top(ctx context.Context, o *topOptions, prefix string) error {
	e, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	// A screen without a single holder would look like an engine without locks.
	if reason, lacks := e.driver.Traits().Lacking(driver.Holders); lacks {
		return fmt.Errorf("top: who holds: %w: %s", interlock.ErrUnsupported, reason)
	}
	looks := &board.Options{URL: e.url.String(), Prefix: prefix, Interval: o.interval, Timeout: a.timeout}
	if !o.allowBreak {
		looks.NoBreak = whyNoBreak
	}
	// A board is printed where there is no screen, so that "top | head" and cron see something.
	in, out := a.ownScreen(o)
	if out == nil {
		return a.topOnce(ctx, e, o, looks)
	}
	s, err := newScreen(in, out, a.getenv("NO_COLOR") == "")
	if err != nil {
		return err
	}
	// The reader is closed before the poller, and the client after both.
	p := board.NewPoller(e.client, looks)
	defer p.Close()
	r := p.Reader(0)
	defer r.Close()
	l := &topLoop{
		app: a, engine: e, screen: s, poller: p, reader: r, model: newTopModel(o.order, o.interval),
	}
	return l.run(ctx)
}

// ownScreen returns the terminal to draw on, or nil if the board is printed. TERM is asked and no database of
// terminals: the sequences that top sends are understood by all that move a cursor.
func (a *app) ownScreen(o *topOptions) (in, out *os.File) {
	term := a.getenv("TERM")
	if o.once || a.output == asJSON || term == "" || term == "dumb" || !isTerminal(a.stdin) || !isTerminal(a.stdout) {
		return nil, nil
	}
	return a.stdin.(*os.File), a.stdout.(*os.File) // nothing else is a terminal
}

// topOnce looks once and prints the board. An engine that failed is the error, after what is known was printed. The
// exit code is that of ls for the same engine, so a script can use either.
func (a *app) topOnce(ctx context.Context, e *engine, o *topOptions, looks *board.Options) error {
	b := board.Take(ctx, e.client, looks)
	if a.output == asJSON {
		if err := a.printJSON(b); err != nil {
			return err
		}
	} else if err := printTop(a.stdout, b, o.order, time.Now()); err != nil {
		return err
	}
	return b.Err
}

// onceWidth is how wide a printed board is, in cells: as wide as the table can use.
const onceWidth = 160

// printTop prints a board as top would show it on a screen with room for all of it.
//
// It uses the same model as the screen, so that what is printed cannot differ from what is shown.
func printTop(w io.Writer, b *board.Board, order topOrder, now time.Time) error {
	// With an interval of an hour no board is too old: there will be no other.
	m := newTopModel(order, time.Hour)
	m.width = onceWidth
	m.take(b)
	m.at = -1 // nothing is selected
	body := m.locksBody(now)
	lines := append(m.head(now), body.head...)
	for i := range body.lines {
		lines = append(lines, body.line(i))
	}
	for _, cycle := range b.Cycles {
		lines = append(lines, topLine{text: "! cycle: " + cycleText(cycle)})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l.text); err != nil {
			return err
		}
	}
	return nil
}
