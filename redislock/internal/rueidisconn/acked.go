package rueidisconn

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// privateGrace is how long a private connection is given for what it is to do, beyond the time that WAIT may take.
const privateGrace = 5 * time.Second

// callAcked is Call with Replicas.
func (c *Conn) callAcked(ctx context.Context, call *conn.Call) conn.Reply {
	var reply conn.Reply
	c.Batch(ctx, []conn.Call{*call}, func(_ int, r conn.Reply) { reply = r })
	return reply
}

// runAcked runs the jobs and then WAIT, for the most replicas and the longest time that any of them asks for. WAIT
// holds up everything that comes after it on its connection, so the connection is nobody else's meanwhile.
func (c *Conn) runAcked(ctx context.Context, n *node, jobs []*conn.Job) ([]resp.Answer, int) {
	replicas, limit := 0, time.Millisecond // 0 would be for ever
	for _, j := range jobs {
		replicas, limit = max(replicas, j.Call.Replicas), max(limit, j.Call.ReplicaTimeout)
	}
	b := c.client.B()
	wait := b.Wait().Numreplicas(int64(replicas)).Timeout(limit.Milliseconds()).Build()
	rs, err := c.private(ctx, n, limit, append(pipeline(b, commandsOf(jobs)), wait))
	if err != nil {
		return resp.Failures(len(jobs), err), 0
	}
	last := len(rs) - 1
	acked, _ := rs[last].AsInt64() // without an answer nobody has acknowledged anything, as far as we know
	return textsOf(rs[:last], len(jobs)), int(acked)
}

// private runs commands on a connection to n that nobody else uses meanwhile: one of those that rueidis keeps for
// blocking commands. rueidis does not always look at the context there, so it is done in a goroutine.
func (c *Conn) private(
	ctx context.Context, n *node, limit time.Duration, commands []rueidis.Completed,
) ([]rueidis.RedisResult, error) {
	type result struct {
		rs  []rueidis.RedisResult
		err error
	}
	done := make(chan result, 1) // buffered, so that nobody need wait for it
	if !c.spawn(func() {         // ends soon after ctx or c.base
		ctx, cancel := context.WithTimeout(ctx, limit+privateGrace)
		defer cancel()
		defer context.AfterFunc(c.base, cancel)()
		rs, err := c.runPrivate(ctx, n, commands)
		done <- result{rs, err}
	}) {
		return nil, &conn.RefusedError{Err: driver.ErrClosed}
	}
	select {
	case r := <-done:
		return r.rs, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Conn) runPrivate(
	ctx context.Context, n *node, commands []rueidis.Completed,
) ([]rueidis.RedisResult, error) {
	source, err := n.source(ctx)
	if err != nil {
		return nil, err
	}
	client, giveBack, err := dedicate(ctx, source)
	if err != nil {
		return nil, &conn.RefusedError{Err: err}
	}
	// Whoever waits for a reply without a look at the context is woken when the connection is closed.
	ended := context.AfterFunc(ctx, client.Close)
	rs := client.DoMulti(ctx, commands...)
	healthy := rs[len(rs)-1].NonRedisError() == nil
	if ended() && healthy {
		giveBack()
	} else {
		client.Close()
	}
	return rs, nil
}

// dedicate takes a connection from the pool of a client. If ctx ends first it returns at once, and the connection is
// given back when it comes.
func dedicate(ctx context.Context, source rueidis.Client) (rueidis.DedicatedClient, func(), error) {
	type result struct {
		client   rueidis.DedicatedClient
		giveBack func()
	}
	taken := make(chan result)
	go func() { // ends when rueidis has a connection or gives up connecting, after the time limit of its dialer
		client, giveBack := source.Dedicate()
		select {
		case taken <- result{client, giveBack}:
		case <-ctx.Done():
			giveBack()
		}
	}()
	select {
	case r := <-taken:
		return r.client, r.giveBack, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
