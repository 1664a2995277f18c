package play

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
)

// What a client gets whose answer is lost, or whose command.
var (
	errLost = errors.New("the answer is lost")
	errCut  = errors.New("the cable is cut")
)

// Line is an actor's way to one server: its connection is made again after it has broken, as client libraries do.
type Line struct {
	link *Link
	lose bool
	cut  bool
}

var _ exhibit.Conn = (*Line)(nil)

// Line connects the client to a Redis.
func (a *Actor) Line(addr, label string) *Line {
	a.p.Helper()
	return &Line{link: a.Dial(addr, label)}
}

// LoseAnswer loses the answer to the next command: the server carries it out, and the connection breaks then.
func (l *Line) LoseAnswer() { l.lose = true }

// Cut has the next command not arrive: the server never hears of it.
func (l *Line) Cut() { l.cut = true }

// Do sends one command and writes it down, with its answer.
func (l *Line) Do(ctx context.Context, args ...string) (any, error) {
	a := l.link.actor
	if err := a.gate(args); err != nil {
		return nil, err
	}
	var reply any
	err := errCut
	if !l.cut {
		reply, err = l.link.conn.Do(ctx, args...)
	}
	l.cut = false
	if l.lose {
		reply, err, l.lose = nil, errors.Join(errLost, err), false
	}
	a.p.said(a.name, l.link.said(args, reply, err), l.link.message(err))
	if unanswered(err) {
		l.redial()
	}
	return reply, err
}

// redial replaces the connection. A server that is away keeps the broken one, which says so at the next command.
func (l *Line) redial() {
	_ = l.link.conn.Close() // it is of no use any more
	p := l.link.actor.p
	conn, err := servers.DialRedis(p.Context(), l.link.addr, nil)
	if err != nil {
		return
	}
	l.link.replace(conn)
	p.Cleanup(func() { _ = conn.Close() })
}
