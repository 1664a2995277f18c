// Single calls. redislock's acquire.go and the others call; link.go sends; conn/retry.go decides whether to go on after
// an error.

package rueidisconn

import (
	"context"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
)

// Call runs the call over the link of its slot. It allocates nothing of its own unless something goes wrong.
func (c *Conn) Call(ctx context.Context, call *conn.Call) conn.Reply {
	if call.Replicas > 0 {
		return c.callAcked(ctx, call)
	}
	var t conn.Try
	for {
		// Looked up in each turn: after an error the slot may have another owner, or the node a new link.
		l, err := c.link(ctx, call.Slot, t.Asking)
		if err != nil {
			return conn.Reply{Err: t.Told(err)}
		}
		text, err := l.try(ctx, &t, call)
		if err == nil {
			return conn.Reply{Text: text, Link: l.number}
		}
		wait, err := l.node.again(&t, l, call.Slot, err)
		if err == nil && wait {
			err = t.Pause(ctx)
		}
		if err != nil {
			return conn.Reply{Err: err}
		}
	}
}

// try runs the call once, in the way that t says.
func (l *link) try(ctx context.Context, t *conn.Try, call *conn.Call) (string, error) {
	if t.Asking == "" {
		return l.call(ctx, call, sendingOf(t))
	}
	// As one pipeline, because ASKING holds for the next command on the connection, whichever goroutine sends it.
	a := l.pipeline(ctx, []resp.Command{{Call: call, InSource: t.Evals > 0, Asking: true}})[0]
	return a.Text, a.Err
}

// sendingOf says how a call is sent next, after what t was told.
func sendingOf(t *conn.Try) resp.Sending {
	switch {
	case t.Evals > 0:
		return resp.InSource
	case t.Alone:
		return resp.Alone
	}
	return resp.ByName
}

// again takes the error of one try at node n, over l if it was over a link, and says how to go on: see [conn.Try.Next].
func (n *node) again(t *conn.Try, l *link, slot uint16, err error) (wait bool, final error) {
	j := n.judged(l, slot, err)
	return t.Next(j, err, n.conn.failsOver())
}

// judged judges an error, and acts on what it says about the servers: another node owns the slot, or this one is no
// primary any more.
func (n *node) judged(l *link, slot uint16, err error) conn.Judgement {
	j := judge(err, n.addr)
	switch j.Verdict {
	case conn.Moved:
		n.conn.moved(slot, j.Addr)
	case conn.Elsewhere:
		if l == nil {
			l = n.link.Load()
		}
		if l != nil {
			l.fail(err) // the new primary is found when the link is made anew
		}
	default:
	}
	return j
}
