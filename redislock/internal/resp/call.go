// Calls: what goroutines ask of a Conn, and how each waits for its answer. command.go and bundle.go encode, write.go
// sends, read.go brings the answers.

package resp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// Call runs a script and returns its answer. It blocks until the answer is there, the connection breaks, or ctx ends
// (seen within about a tick, 20 ms). An error that the server answered is a ServerError. A *conn.RefusedError or
// conn.ErrUnsent says that nothing was sent; after any other error the script may run.
func (c *Conn) Call(ctx context.Context, call *conn.Call, how Sending) (string, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	var p *request
	// A request that the script of bundles knows is gathered with others into one command. Any other one closes the
	// bundle first, so that commands go out in the order of the calls.
	if kind := c.gathered.kindOf(call, how); kind != 0 {
		p = c.bundle(kind, call)
	} else {
		c.seal()
		p = c.newRequest()
		c.out = appendCall(c.out, call, how == InSource)
		c.add(p, c.sent+uint64(len(c.out)))
	}
	if err := c.finish(ctx, p); err != nil {
		return "", err
	}
	text, err := p.text, p.err
	p.recycle()
	return text, err
}

// Do runs a command and returns its answer: string, int64, nil, or []any of these. Errors are as for Call.
func (c *Conn) Do(ctx context.Context, args ...string) (any, error) {
	answers, err := c.multi(ctx, args)
	if err != nil {
		return nil, err
	}
	return answers[0].value, answers[0].err
}

// multi runs commands without those of others in between. The error is one that all of them share.
func (c *Conn) multi(ctx context.Context, commands ...[]string) ([]result, error) {
	for _, args := range commands {
		if err := answerable(args); err != nil {
			return nil, &conn.RefusedError{Err: err}
		}
	}
	return c.together(ctx, len(commands), func(out []byte) []byte {
		for _, args := range commands {
			out = appendCommand(out, args...)
		}
		return out
	})
}

// answerable refuses commands that do not have exactly one answer: the queue of requests would lose its step with the
// answers.
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
func (c *Conn) together(ctx context.Context, n int, write func([]byte) []byte) ([]result, error) {
	if n == 0 {
		return nil, nil
	}
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	p := c.newRequest()
	p.left, p.listed, p.list = n, true, make([]result, 0, n)
	c.seal()
	// From the first byte on, to be on the safe side: the server may run the first command before it has the last.
	first := c.sent + uint64(len(c.out)) + 1
	c.out = write(c.out)
	c.add(p, first)
	if err := c.finish(ctx, p); err != nil {
		return nil, err
	}
	list, err := p.list, p.err
	p.recycle()
	return list, err
}

// Subscribe runs SUBSCRIBE, SSUBSCRIBE, UNSUBSCRIBE or SUNSUBSCRIBE for one channel; kind names it in lower case. It
// returns when the server has confirmed that, and pushed has been called with the confirmation.
func (c *Conn) Subscribe(ctx context.Context, kind, channel string) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	p := c.newRequest()
	p.confirm, p.channel = kind, channel
	// A bundle that is being gathered goes first, as in Call.
	c.seal()
	c.out = appendCommand(c.out, kind, channel)
	c.add(p, c.sent+uint64(len(c.out)))
	if err := c.finish(ctx, p); err != nil {
		return err
	}
	err := p.err
	p.recycle()
	return err
}

// enter locks mu, unless it returns an error. It blocks while too many answers are owed.
func (c *Conn) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &conn.RefusedError{Err: err}
	}
	c.mu.Lock()
	// room is closed when there is space again. Several may wait for one channel; each looks anew.
	for c.err == nil && c.owed >= mostOwed {
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.closed:
		case <-ctx.Done():
			return &conn.RefusedError{Err: ctx.Err()}
		}
		c.mu.Lock()
	}
	if c.err != nil {
		c.mu.Unlock()
		return conn.ErrUnsent
	}
	return nil
}

// add queues a request whose commands have been appended to out. The caller holds mu.
func (c *Conn) add(p *request, first uint64) {
	p.first = first
	c.queue.push(p)
	// The pulse runs only while answers are owed: an idle connection need not answer.
	if c.owed == 0 && !c.pulsing.isSet {
		c.pulseReceived, c.silent = c.received, 0
		c.pulsing.set(pulseTime)
	}
	c.owed += p.left
}

// finish returns when p has its answers, or within about a tick after ctx has ended, with its error. In the latter case
// the answers are thrown away when they come. It does what there is to do meanwhile: write if nobody writes, read if
// nobody reads, else park. The caller holds mu, which it unlocks.
func (c *Conn) finish(ctx context.Context, p *request) error {
	p.ctx = ctx
	for !p.done.Load() && ctx.Err() == nil {
		switch mine := c.flusher == nil && c.isBehind() && (!c.gathering || c.full); {
		case !mine && c.reader != nil:
			if c.park(ctx, p) {
				return nil
			}
		case mine:
			c.flush(&p.waiter, ctx.Err)
		default:
			c.read(&p.waiter, time.Time{}, true)
		}
	}
	c.handOn()
	defer c.mu.Unlock()
	if p.done.Load() {
		return nil
	}
	p.given, p.ctx = true, nil // the reader drops its answers now
	return ctx.Err()
}

// park waits until there may be something to do. It reports true, and leaves mu unlocked, if p has its answers and
// there is nothing else to do. While the reader stops at each tick and looks at the contexts (see keepTime), p trusts
// it and does not watch ctx itself.
func (c *Conn) park(ctx context.Context, p *request) bool {
	trusts := c.ticks
	p.parked, p.trusts = true, trusts
	if trusts {
		c.trusting++
	}
	c.mu.Unlock()
	if trusts { // as nearly always: it costs less than what follows
		<-p.wake
	} else {
		select {
		case <-p.wake:
		case <-ctx.Done():
		}
	}
	// Once p is done nobody summons it any more, so the field can be read without mu.
	if p.done.Load() && !p.summoned {
		return true
	}
	c.mu.Lock()
	p.unpark()
	return false
}
