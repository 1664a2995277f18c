package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
)

const (
	// wireGrace is how long a write may go on after the context of who writes has ended. Usually it is over in a moment.
	wireGrace = 20 * time.Millisecond

	// wireRounds is how often one goroutine writes before another takes over: meanwhile its own answer may have come.
	wireRounds = 4

	// wireYields is how often who writes lets others go first. Each time costs a turn of the scheduler's queue.
	wireYields = 2

	// wireKeep is how large a buffer may be that is kept for the next time.
	wireKeep = 64 << 10
)

// call runs a script and returns its answer. An error of the server is a serverError. One that says that nothing was sent
// is a *RefusedError or errUnsent.
func (w *wire) call(ctx context.Context, c *Call, source bool) (string, error) {
	if err := w.enter(ctx); err != nil {
		return "", err
	}
	p := w.newRequest()
	w.out = appendCall(w.out, c, source)
	w.add(p, w.sent+uint64(len(w.out)))
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
			return nil, &RefusedError{err}
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
		return &RefusedError{err}
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
			return &RefusedError{ctx.Err()}
		}
		w.mu.Lock()
	}
	if w.err != nil {
		w.mu.Unlock()
		return errUnsent
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

// finish returns when p has its answers, or with the error of ctx when that has ended: the answers are thrown away then
// when they come. It is called under mu, and unlocks it.
func (w *wire) finish(ctx context.Context, p *request) error {
	var disarm func() bool
	for !p.done.Load() && ctx.Err() == nil {
		mine := w.flusher == nil && w.isBehind()
		if !mine && w.reader != nil {
			if w.park(ctx, p) {
				return w.left(ctx, p, disarm)
			}
			continue
		}
		if disarm == nil && ctx.Done() != nil {
			w.mu.Unlock()
			disarm = context.AfterFunc(ctx, p.cut)
			w.mu.Lock()
			continue // others may have been faster
		}
		if mine {
			w.flush(&p.waiter)
		} else {
			w.read(&p.waiter, time.Time{})
		}
	}
	w.handOn()
	w.mu.Unlock()
	return w.left(ctx, p, disarm)
}

// left is the end of finish.
func (w *wire) left(ctx context.Context, p *request, disarm func() bool) error {
	p.cutting = disarm != nil && !disarm()
	if p.done.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.done.Load() { // in the last moment
		return nil
	}
	p.given = true
	return ctx.Err()
}

// park waits until there may be something to do. It reports true, and leaves mu unlocked, if p has its answers and
// nothing else is to be done.
func (w *wire) park(ctx context.Context, p *request) bool {
	p.parked = true
	w.mu.Unlock()
	if done := ctx.Done(); done == nil {
		<-p.wake
	} else {
		select {
		case <-p.wake:
		case <-done:
		}
	}
	// Once p is done nobody summons it any more.
	if p.done.Load() && !p.summoned {
		return true
	}
	w.mu.Lock()
	p.parked = false
	return false
}

// flush writes what there is to be written. It is called under mu.
func (w *wire) flush(x *waiter) {
	w.flusher = x
	for size, i := 0, 0; w.crowd && i < wireYields && len(w.out) > size; i++ {
		// Those who were roused together soon have more to send. They are let go first, as long as they bring something: one
		// write costs as much as ten small scripts.
		size = len(w.out)
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	w.crowd = false
	for round := 0; w.isBehind() && w.err == nil; round++ {
		if round >= wireRounds && w.summon() {
			break
		}
		if !w.write() {
			break
		}
	}
	w.flusher = nil
}

// isBehind reports whether there is something to be written. It is called under mu.
func (w *wire) isBehind() bool { return w.behind || len(w.out) > 0 }

// write writes once. It reports false if it was interrupted. It is called under mu.
func (w *wire) write() bool {
	b := w.out
	w.out, w.spare = w.spare[:0], nil
	w.sent += uint64(len(b)) // in case that somebody finds the connection broken meanwhile
	w.writing = true
	w.mu.Unlock()
	n, err := len(b), error(nil)
	if n > 0 {
		n, err = w.conn.Write(b)
	} else {
		err = w.raw.catchUp()
	}
	w.mu.Lock()
	w.writing = false
	if cap(b) <= wireKeep {
		w.spare = b[:0]
	}
	if w.blocked || w.behind {
		w.blocked, w.behind = false, w.raw.isBehind()
		_ = w.raw.SetWriteDeadline(time.Time{}) // fails only when the connection has ended
	}
	if err != nil {
		w.sent -= uint64(len(b) - n)
		w.fail(err)
	}
	return err == nil && !w.behind
}

// flushAside writes what those have left whose contexts have ended. It may take until the connection ends.
func (w *wire) flushAside() {
	defer w.work.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flusher == nil {
		w.flush(&waiter{})
		w.handOn()
	}
}
