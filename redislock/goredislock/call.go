package goredislock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

const (
	// patience is how long a call is tried again that a server refuses for a reason that passes: it loads its data, a
	// failover is under way, a slot is on its way to another node.
	patience = 2 * time.Second

	// mostRedirects is how often a call follows MOVED and ASK, beyond what the cluster client does by itself. Nodes that
	// point at each other agree within moments.
	mostRedirects = 16

	// mostEvals is how often a call is told that its script is not known before it gives up. Once is usual; in a pipeline
	// a SCRIPT FLUSH may come between.
	mostEvals = 3
)

// once is a command that go-redis does not send again after an error that leaves its outcome unknown. Redirects of a
// Cluster are followed all the same: they come from a server that has not run it.
type once struct{ *redis.Cmd }

// NoRetry says so.
func (once) NoRetry() bool { return true }

func newOnce(ctx context.Context, args ...any) once {
	cmd := once{redis.NewCmd(ctx, args...)}
	// A cluster client would ask the server for it by COMMAND, which the user may not be allowed to run.
	cmd.SetStepCount(1)
	return cmd
}

// command is the command that runs a script, by its source or by its name.
func command(ctx context.Context, call *redislock.Call, source bool) once {
	args := make([]any, 0, 3+len(call.Keys)+len(call.Args))
	if source {
		args = append(args, "eval", call.Script.Source())
	} else {
		args = append(args, "evalsha", call.Script.SHA())
	}
	args = append(args, len(call.Keys))
	for _, key := range call.Keys {
		args = append(args, key)
	}
	for _, arg := range call.Args {
		args = append(args, arg)
	}
	cmd := newOnce(ctx, args...)
	if len(call.Keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return cmd
}

// keyOf returns a key of the call.
func keyOf(call *redislock.Call) string {
	if len(call.Keys) == 0 {
		return ""
	}
	return call.Keys[0]
}

// Call runs a script over a connection of the pool.
func (c *conn) Call(ctx context.Context, call *redislock.Call) redislock.Reply {
	if call.Replicas > 0 {
		return c.callAcked(ctx, call)
	}
	var t try
	for {
		cmd, key, redirected := command(ctx, call, t.evals > 0), keyOf(call), t.redirected
		text, err := within(ctx, c, func() (string, error) {
			if err := c.send(ctx, cmd, key, redirected); err != nil {
				return "", err
			}
			return cmd.Text()
		})
		if err == nil {
			return redislock.Reply{Text: text}
		}
		wait, err := t.next(c, err)
		if err != nil {
			return redislock.Reply{Err: err}
		}
		if wait && !pause(ctx) {
			return redislock.Reply{Err: &redislock.RefusedError{Err: ctx.Err()}}
		}
	}
}

// send sends a command to the server that has the key. In a Cluster that is done without the cluster client, unless it
// has to follow a redirect: it would try again by rules of its own.
func (c *conn) send(ctx context.Context, cmd once, key string, redirected bool) error {
	if redirected {
		return c.cluster.Process(ctx, cmd)
	}
	node, err := c.owner(ctx, key)
	if err != nil {
		return err
	}
	return node.Process(ctx, cmd)
}

// try is what a call has been told so far by servers that did not run it. The zero value is a new call's.
type try struct {
	direct     bool      // the cluster client cannot follow redirects for it
	redirected bool      // let the cluster client follow a redirect
	asking     string    // else: where to ask this time only, after ASK
	evals      int       // how often a server did not know the script
	redirects  int       // MOVED and ASK
	since      time.Time // of the first answer that asks for patience
}

// next takes the error of one try. It returns an error if that was the last try, and otherwise whether to pause before
// the next.
func (t *try) next(c *conn, err error) (wait bool, final error) {
	t.asking = ""
	v := judge(err)
	switch v {
	case refused, noScript:
	default:
		c.outdated() // perhaps; go-redis itself looks anew only every ten seconds, or after a redirect
	}
	switch v {
	case unknown:
		return false, err
	case noScript:
		t.evals++
		return false, refusedIf(t.evals > mostEvals, err)
	case moved, asked:
		return t.redirect(c, v, err)
	case unreached:
		return true, refusedIf(!c.failsOver() || t.impatient(), err)
	case later, elsewhere:
		return true, refusedIf(t.impatient(), err)
	case refused:
	}
	return false, refusedIf(true, err)
}

// redirect is next after MOVED and ASK.
func (t *try) redirect(c *conn, v verdict, err error) (wait bool, final error) {
	t.redirects++
	switch {
	case c.cluster == nil:
		return false, refusedIf(true, err) // the server is of a Cluster, for us it is not
	case !t.direct:
		t.redirected = true
		return t.redirects > 2, refusedIf(t.redirects > mostRedirects, err)
	case v == asked:
		t.asking, _ = redis.IsAskError(err)
		return t.redirects > 2, refusedIf(t.impatient(), err)
	}
	return true, refusedIf(t.impatient(), err) // until the cluster client has looked anew
}

// impatient reports whether the call has been tried again for long enough.
func (t *try) impatient() bool {
	if t.since.IsZero() {
		t.since = time.Now()
	}
	return time.Since(t.since) > patience
}
