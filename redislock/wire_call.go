package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// call runs a script and returns its answer. An error of the server is a serverError. One that says that nothing was sent
// is a *RefusedError or conn.ErrUnsent.
func (w *wire) call(ctx context.Context, c *Call, how sending) (string, error) {
	if err := w.enter(ctx); err != nil {
		return "", err
	}
	var p *request
	if kind := w.gathered.kindOf(c, how); kind != 0 {
		p = w.bundle(kind, c)
	} else {
		w.seal()
		p = w.newRequest()
		w.out = appendCall(w.out, c, how == inSource)
		w.add(p, w.sent+uint64(len(w.out)))
	}
	if err := w.finish(ctx, p); err != nil {
		return "", err
	}
	text, err := p.text, p.err
	p.recycle()
	return text, err
}

// do runs a command and returns its answer: string, int64, nil, or []any of these.
func (w *wire) do(ctx context.Context, args ...string) (any, error) {
	answers, err := w.multi(ctx, args)
	if err != nil {
		return nil, err
	}
	return answers[0].value, answers[0].err
}

// multi runs commands that nobody else's come between. The error is that of all commands.
func (w *wire) multi(ctx context.Context, commands ...[]string) ([]wireAnswer, error) {
	for _, args := range commands {
		if err := answerable(args); err != nil {
			return nil, &RefusedError{Err: err}
		}
	}
	return w.together(ctx, len(commands), func(out []byte) []byte {
		for _, args := range commands {
			out = appendCommand(out, args...)
		}
		return out
	})
}

// answerable refuses commands that are not answered once, or not by an answer.
func answerable(args []string) error {
	if len(args) == 0 || args[0] == "" {
		return errors.New("no command")
	}
	if name := strings.ToUpper(args[0]); strings.HasSuffix(name, "SUBSCRIBE") || name == "MONITOR" || name == "SYNC" {
		return fmt.Errorf("%s changes the connection", name)
	}
	return nil
}

// together runs n commands, which write appends to its argument.
func (w *wire) together(ctx context.Context, n int, write func([]byte) []byte) ([]wireAnswer, error) {
	if n == 0 {
		return nil, nil
	}
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	p := w.newRequest()
	p.left, p.listed, p.list = n, true, make([]wireAnswer, 0, n)
	w.seal()
	first := w.sent + uint64(len(w.out)) + 1 // with the first byte of all, to be on the safe side
	w.out = write(w.out)
	w.add(p, first)
	if err := w.finish(ctx, p); err != nil {
		return nil, err
	}
	list, err := p.list, p.err
	p.recycle()
	return list, err
}

// subscribe runs SUBSCRIBE, SSUBSCRIBE, UNSUBSCRIBE or SUNSUBSCRIBE, as kind says in lower case, for one channel. It
// returns when the server has confirmed that, and heard has been told.
func (w *wire) subscribe(ctx context.Context, kind, channel string) error {
	if err := w.enter(ctx); err != nil {
		return err
	}
	p := w.newRequest()
	p.confirm, p.channel = kind, channel
	w.seal()
	w.out = appendCommand(w.out, kind, channel)
	w.add(p, w.sent+uint64(len(w.out)))
	if err := w.finish(ctx, p); err != nil {
		return err
	}
	err := p.err
	p.recycle()
	return err
}

// enter returns with mu locked, unless there is an error.
func (w *wire) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &RefusedError{Err: err}
	}
	w.mu.Lock()
	for w.err == nil && w.owed >= wireOwed {
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-w.closed:
		case <-ctx.Done():
			return &RefusedError{Err: ctx.Err()}
		}
		w.mu.Lock()
	}
	if w.err != nil {
		w.mu.Unlock()
		return conn.ErrUnsent
	}
	return nil
}

// add adds a request whose commands have been appended to out. It is called under mu.
func (w *wire) add(p *request, first uint64) {
	p.first = first
	w.queue.push(p)
	if w.owed == 0 && !w.pulsing.isSet {
		w.pulseReceived, w.silent = w.received, 0
		w.pulsing.set(wirePulse)
	}
	w.owed += p.left
}

// finish returns when p has its answers, or a moment after ctx has ended, with its error: the answers are thrown away then
// when they come. It is called under mu, and unlocks it.
func (w *wire) finish(ctx context.Context, p *request) error {
	p.ctx = ctx
	for !p.done.Load() && ctx.Err() == nil {
		switch mine := w.flusher == nil && w.isBehind() && (!w.gathering || w.full); {
		case !mine && w.reader != nil:
			if w.park(ctx, p) {
				return nil
			}
		case mine:
			w.flush(&p.waiter, ctx.Err)
		default:
			w.read(&p.waiter, time.Time{}, true)
		}
	}
	w.handOn()
	defer w.mu.Unlock()
	if p.done.Load() {
		return nil
	}
	p.given, p.ctx = true, nil
	return ctx.Err()
}

// park waits until there may be something to do. It reports true, and leaves mu unlocked, if p has its answers and
// nothing else is to be done.
func (w *wire) park(ctx context.Context, p *request) bool {
	trusts := w.ticks
	p.parked, p.trusts = true, trusts
	if trusts {
		w.trusting++
	}
	w.mu.Unlock()
	if trusts { // as nearly always: it costs less than what follows
		<-p.wake
	} else {
		select {
		case <-p.wake:
		case <-ctx.Done():
		}
	}
	// Once p is done nobody summons it any more.
	if p.done.Load() && !p.summoned {
		return true
	}
	w.mu.Lock()
	p.unpark()
	return false
}
