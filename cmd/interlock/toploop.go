// The loop of a running top: one goroutine that draws, and waits for keys, signals, boards and answers. topmodel.go
// changes with each of them; screen.go draws what it says. All that changes the model comes through its select, so the
// model needs no mutex, and a test can drive it without a loop.

package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/console/board"
)

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
