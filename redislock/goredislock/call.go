// Single calls, over a connection of the client's pool. conn/retry.go decides whether to go on after an error,
// transport.go finds the server.

package goredislock

import (
	"context"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis does not send again after an error that leaves its outcome unknown: only the portable
// layer knows when a repetition is safe. Redirects of a Cluster are still followed, as they come from a server that has
// not run the command.
type once struct{ *redis.Cmd }

// NoRetry is what go-redis asks a command.
func (once) NoRetry() bool { return true }

// newOnce returns a command of these words.
func newOnce(ctx context.Context, args ...any) once {
	cmd := once{redis.NewCmd(ctx, args...)}
	// Without the count a cluster client would ask the server for it by COMMAND, which the user may have no right to
	// run.
	cmd.SetStepCount(1)
	return cmd
}

// command builds the command that runs a script, by its source or by its name.
func command(ctx context.Context, call *conn.Call, source bool) once {
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
	// The cluster client takes the slot from the word at this position.
	if len(call.Keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return cmd
}

// keyOf returns a key of the call, which stands for its slot; it is empty for a call without keys.
func keyOf(call *conn.Call) string {
	if len(call.Keys) == 0 {
		return ""
	}
	return call.Keys[0]
}

// Call runs a script over a connection of the pool. The reply has no Link: pushes come over another connection.
func (c *transport) Call(ctx context.Context, call *conn.Call) conn.Reply {
	if call.Replicas > 0 {
		return c.callAcked(ctx, call)
	}
	var t conn.Try
	// Each turn sends the script once. Whether another follows is decided in again, by the rules that both transports
	// share.
	for {
		text, node, err := c.send(ctx, &t, call)
		if err == nil {
			return conn.Reply{Text: text}
		}
		wait, err := c.again(&t, call, node, err)
		if err == nil && wait {
			err = t.Pause(ctx)
		}
		if err != nil {
			return conn.Reply{Err: err}
		}
	}
}

// send sends a call to the server that has its key, and says which that was. It chooses the server itself: the cluster
// client would try again by rules of its own. Only a redirect is left to the cluster client, and then node is nil.
func (c *transport) send(
	ctx context.Context, t *conn.Try, call *conn.Call,
) (text string, node *redis.Client, err error) {
	if !t.Redirected {
		if node, err = c.owner(ctx, keyOf(call)); err != nil {
			return "", nil, err
		}
	}
	// After a NOSCRIPT the script goes along in source, since the server did not know its hash.
	cmd := command(ctx, call, t.Evals > 0)
	text, err = within(ctx, c, func() (string, error) {
		if node == nil {
			if err := c.cluster.Process(ctx, cmd); err != nil {
				return "", err
			}
		} else if err := node.Process(ctx, cmd); err != nil {
			return "", err
		}
		return cmd.Text()
	})
	return text, node, err
}

// again takes the error of one try of a call at node, and says how to go on: see [conn.Try.Next].
func (c *transport) again(t *conn.Try, call *conn.Call, node *redis.Client, err error) (wait bool, final error) {
	j := c.judged(node, err)
	wait, final = t.Next(j, err, c.failsOver())
	switch {
	case j.Verdict != conn.Moved && j.Verdict != conn.Asked:
	case call.Replicas == 0: // the cluster client finds the way from here
		t.Redirected, t.Asking = true, ""
	case j.Verdict == conn.Moved:
		wait = true // until the cluster client has looked anew: WAIT needs the node itself
	}
	return wait, final
}

// judged judges an error, and acts on what it says about the servers.
func (c *transport) judged(node *redis.Client, err error) conn.Judgement {
	j := c.judge(node, err)
	if j.Verdict != conn.Refused && j.Verdict != conn.NoScript {
		// The table of slots may be outdated. go-redis itself looks only every ten seconds, or after a redirect.
		c.outdated()
	}
	return j
}
