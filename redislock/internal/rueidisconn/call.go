package rueidisconn

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
)

// mostRedirects is how often a call follows MOVED and ASK. Nodes that point at each other agree within moments.
const mostRedirects = 16

// mostEvals is how often a call is told that its script is not known before it gives up. Once is usual; in a pipeline
// a SCRIPT FLUSH may come between.
const mostEvals = 3

// Call runs c over the link of its slot. It allocates nothing of its own unless something goes wrong.
func (c *Conn) Call(ctx context.Context, call *conn.Call) conn.Reply {
	if call.Replicas > 0 {
		return c.callAcked(ctx, call)
	}
	var t try
	for {
		l, err := c.link(ctx, call.Slot, t.asking)
		if err != nil {
			return conn.Reply{Err: err}
		}
		text, err := t.over(ctx, l, call)
		if err == nil {
			return conn.Reply{Text: text, Link: l.number}
		}
		wait, err := t.next(l.node, l, call.Slot, err)
		if err != nil {
			return conn.Reply{Err: err}
		}
		if wait && !pause(ctx) {
			return conn.Reply{Err: &conn.RefusedError{Err: ctx.Err()}}
		}
	}
}

// try is what a call has been told so far by servers that did not run it. The zero value is a new call's.
type try struct {
	asking    string    // where to ask this time only, after ASK
	alone     bool      // a bundle it was in was not run
	evals     int       // how often a server did not know the script
	redirects int       // MOVED and ASK
	primaries int       // how often a server was not the primary any more
	since     time.Time // of the first answer that asks for patience
}

// over runs the call once.
func (t *try) over(ctx context.Context, l *link, call *conn.Call) (string, error) {
	if t.asking == "" {
		return l.call(ctx, call, t.how())
	}
	// Together, because ASKING holds for the next command on the connection, whoever's it is.
	r := l.pipeline(ctx, commandsOf([]*job{{call: call, try: *t}}))[0]
	return r.Text, r.Err
}

func (t *try) how() resp.Sending {
	switch {
	case t.evals > 0:
		return resp.InSource
	case t.alone:
		return resp.Alone
	}
	return resp.ByName
}

// next takes the error of one try at node n, over l if it was over a link. It returns an error if that was the last
// try, and otherwise whether to pause before the next.
func (t *try) next(n *node, l *link, slot uint16, err error) (wait bool, final error) {
	j := judge(err, n.addr)
	t.asking = ""
	switch j.verdict {
	case unknown:
		return false, err
	case unsent:
		return false, nil
	case byItself:
		t.alone = true
		return false, nil
	case noScript:
		t.evals++
		return false, refusedIf(t.evals > mostEvals, err)
	case moved, asked:
		t.redirects++
		if j.verdict == moved {
			n.conn.moved(slot, j.addr)
		} else {
			t.asking = j.addr
		}
		return t.redirects > 2, refusedIf(t.redirects > mostRedirects, err)
	case elsewhere:
		if l == nil {
			l = n.link.Load()
		}
		if l != nil {
			l.fail(err) // whoever has become the primary is found when it is made anew
		}
		t.primaries++
		return false, refusedIf(t.primaries > 1, err)
	case unreached:
		return true, refusedIf(!n.conn.failsOver() || t.impatient(), err)
	case later:
		return true, refusedIf(t.impatient(), err)
	case refused:
	}
	return false, refusedIf(true, err)
}

// impatient reports whether the call has been tried again for long enough.
func (t *try) impatient() bool {
	if t.since.IsZero() {
		t.since = time.Now()
	}
	return time.Since(t.since) > patience
}

// refusedIf returns err as a refusal if it is the end, and else nil.
func refusedIf(end bool, err error) error {
	var refusal *conn.RefusedError
	switch {
	case !end:
		return nil
	case errors.As(err, &refusal):
		return err
	}
	return &conn.RefusedError{Err: err}
}
