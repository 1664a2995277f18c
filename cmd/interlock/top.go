// interlock top: the flags, whether there is a screen to draw on, and the loop of a running top: one goroutine that
// draws, and waits for keys, signals, boards and answers. All that changes the model comes through its select, so the
// model needs no mutex, and a test can drive it without a loop. topmodel.go knows what is shown, topview.go draws it.
// top is in both builds, because package board, which looks for it, has no HTTP (docs/rationale.md, The console).

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
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

// topLoop is a running top. All of it belongs to the goroutine of loop, except engine and poller, which breakHold uses
// too, and the channels, to which others send.
//
// Only the engine's answers are slow, and they come from other goroutines: a key is answered at once while the engine
// hangs.
type topLoop struct {
	app    *app
	engine *engine
	model  *topModel
	screen *screen
	poller *board.Poller
	reader *board.Reader

	typed    <-chan string // what the terminal has sent
	pending  string        // the end of it that may be the beginning of a key
	signals  chan os.Signal
	warned   chan string    // what engines and the client log
	answered chan topAnswer // what became of holds to break
}

// topAnswer is what became of a hold that was to be broken.
type topAnswer struct {
	target board.Event
	err    error
}

// escapeTime is how long the rest of a key's bytes may take after the first, before an escape character is a key by
// itself. A network may tear them apart.
const escapeTime = 50 * time.Millisecond

// run shows boards until a key or a signal ends it. Signals are caught before the terminal is taken, so that none of
// them leaves it as top needs it.
//
// The messages of engines are diverted before the screen is taken, and come back after during has left it.
func (l *topLoop) run(ctx context.Context) error {
	l.catch()
	defer signal.Stop(l.signals)
	// Each has a buffer of one, so no sender waits for a loop that has ended.
	l.answered = make(chan topAnswer, 1)
	l.warned = make(chan string, 1)
	defer l.app.divert(&topWarnings{l.warned})()
	l.model.width, l.model.height = l.screen.size()
	return l.screen.during(func() error {
		typed, stop, err := readKeys(l.screen.in)
		if err != nil {
			return err
		}
		defer stop()
		l.typed = typed
		return l.loop(ctx)
	})
}

// catch begins to catch signals. A signal that was ignored at the start stays so. WINCH and TSTP are among them from
// the start, unlike for run: this process draws and stops by itself.
func (l *topLoop) catch() {
	l.signals = make(chan os.Signal, 32)
	for _, sig := range append([]os.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}, deadly...) {
		if !signal.Ignored(sig) {
			signal.Notify(l.signals, sig)
		}
	}
}

// loop draws, waits for one thing to happen, and takes it in, again and again. Drawing comes first, and sends nothing
// if nothing has changed.
//
// The cases need no order. A key that comes with a board acts on what is on the screen or on what replaces it a moment
// later; b keeps the hold that was selected when it was pressed.
func (l *topLoop) loop(ctx context.Context) error {
	clock := time.NewTicker(time.Second) // ages grow also when the engine says nothing
	defer clock.Stop()
	for {
		if err := l.screen.draw(l.model.frame(time.Now())); err != nil {
			return err
		}
		var quit bool
		var err error
		select {
		// From the goroutine of readKeys, which is at most one read ahead.
		case sent, ok := <-l.typed:
			if !ok { // the terminal has vanished
				return silently(exitSignal + int(syscall.SIGHUP))
			}
			quit = l.keys(ctx, l.pending+sent, false)
		// The rest of a sequence has not come: the escape character was the key.
		case <-l.escaped():
			quit = l.keys(ctx, l.pending, true)
		case sig := <-l.signals:
			err = l.signal(sig.(syscall.Signal))
		// The poller has looked; what has changed meanwhile comes as one update.
		case <-l.reader.Changed():
			l.update()
		case text := <-l.warned:
			l.model.note = text
		case answer := <-l.answered:
			l.model.answered(answer.target.Kind, answer.target.Name, answer.err)
		case <-clock.C:
		// Tests end it so; the command's context has no end of its own.
		case <-ctx.Done():
			return nil
		}
		if quit || err != nil {
			return err
		}
	}
}

// escaped returns a channel that says when the beginning of a key has waited for its rest for long enough: Escape alone
// is a key. Without such a beginning it is nil, and never says anything.
func (l *topLoop) escaped() <-chan time.Time {
	if l.pending == "" {
		return nil
	}
	return time.After(escapeTime)
}

// keys gives the model what was typed. It reports whether that ends top. A paste brings many keys in one read; each of
// them acts as if it had been typed.
func (l *topLoop) keys(ctx context.Context, sent string, last bool) (quit bool) {
	var keys []string
	keys, l.pending = parseKeys(sent, last)
	for _, k := range keys {
		action := l.model.key(k)
		if action.quit {
			return true
		}
		if action.broken != nil {
			go l.breakHold(ctx, *action.broken) // ends with the engine's answer, at most after --timeout
		}
	}
	return false
}

// breakHold ends a hold, in a goroutine of its own. It does not wait for the loop to hear the answer, because top may
// have ended meanwhile.
//
// The poller asks, so that its next board says "broken" and not "released", and comes soon.
func (l *topLoop) breakHold(ctx context.Context, target board.Event) {
	ctx, cancel := l.app.within(ctx)
	defer cancel()
	err := l.poller.Break(target, func() error {
		return l.engine.client.Break(ctx, target.Kind, target.Name, target.Token)
	})
	select {
	case l.answered <- topAnswer{target, explained(ctx, err)}:
	default: // two at once: the board shows what became of the other
	}
}

// signal does what a signal wants. The error ends top. The exit code is that of a shell for the signal, as in run. It
// is silent, because the user has sent the signal.
func (l *topLoop) signal(sig syscall.Signal) error {
	switch sig {
	case syscall.SIGWINCH:
	case syscall.SIGTSTP:
		// In this order: the shell that gets the prompt must find its own screen and settings.
		l.screen.leave()
		stopOurselves()
		return l.back()
	case syscall.SIGCONT: // after a SIGSTOP, which cannot be caught: somebody else may have had the terminal
		return l.back()
	default:
		return silently(exitSignal + int(sig))
	}
	l.model.width, l.model.height = l.screen.size()
	l.screen.shown = nil // terminals move what is there when their size changes
	return nil
}

// back takes the terminal again, and draws all of it anew. The size is asked again, because nobody tells a stopped
// process that it has changed.
func (l *topLoop) back() error {
	l.model.width, l.model.height = l.screen.size()
	return l.screen.enter()
}

// update takes in what the reader has missed: a whole board, or changes to the one that is shown. A board and a change
// are the same to the model, which always takes a whole one.
func (l *topLoop) update() {
	u, ok := l.reader.Next()
	switch {
	case !ok:
	case u.Board != nil:
		l.model.take(u.Board)
	default:
		l.model.take(u.Change.Apply(l.model.board))
	}
}

// topWarnings is where messages for people go while top has the screen: its last line shows the latest.
type topWarnings struct{ ch chan string }

// Write never blocks, because engines write from goroutines of their own. A message that comes while another has not
// been shown is dropped.
func (w *topWarnings) Write(p []byte) (int, error) {
	text := strings.TrimSuffix(strings.TrimPrefix(string(p), "interlock: "), "\n")
	select {
	case w.ch <- text:
	default: // an earlier one has not been shown yet
	}
	return len(p), nil
}
