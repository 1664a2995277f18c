// Calls that wait for replicas (WAIT). call.go and batch.go come here for them; nothing else uses a connection of the
// client's pool.

package rueidisconn

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// privateGrace is how long a private connection may take for its commands, beyond the time that WAIT may take.
const privateGrace = 5 * time.Second

// callAcked is Call with Replicas: a batch of one, because both need the same pipeline.
func (c *Conn) callAcked(ctx context.Context, call *conn.Call) conn.Reply {
	var reply conn.Reply
	c.Batch(ctx, []conn.Call{*call}, func(_ int, r conn.Reply) { reply = r })
	return reply
}

// runAcked runs the jobs and then WAIT, for the most replicas and the longest time that any of them asks for. One WAIT
// is enough for all: it speaks of everything that was written on its connection before. WAIT holds up whatever comes
// after it on its connection, so the connection is used for nothing else meanwhile.
func (c *Conn) runAcked(ctx context.Context, n *node, jobs []*conn.Job) ([]resp.Answer, int) {
	replicas, limit := 0, time.Millisecond // 0 would mean for ever
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
	// Without an answer to WAIT no replica has acknowledged anything, as far as is known.
	acked, _ := rs[last].AsInt64()
	return textsOf(rs[:last], len(jobs)), int(acked)
}

// private runs commands on a connection to n that nobody else uses meanwhile: one of those that rueidis keeps for
// blocking commands. rueidis does not always look at the context there, so the commands run in a goroutine, and private
// returns when ctx ends.
func (c *Conn) private(
	ctx context.Context, n *node, limit time.Duration, commands []rueidis.Completed,
) ([]rueidis.RedisResult, error) {
	type result struct {
		rs  []rueidis.RedisResult
		err error
	}
	done := make(chan result, 1) // buffered, so that the goroutine ends even if nobody reads
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

// runPrivate takes a connection, runs the commands on it, and gives it back if it is still sound. After an error of the
// network, or when ctx has ended, answers may still be on their way: then the connection is closed.
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
	// A call that waits for a reply without looking at the context is woken when its connection is closed.
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

// dedicate takes a connection from the pool of a client, which may have to make one. If ctx ends first it returns at
// once, and the connection is given back when it comes.
func dedicate(ctx context.Context, source rueidis.Client) (rueidis.DedicatedClient, func(), error) {
	type result struct {
		client   rueidis.DedicatedClient
		giveBack func()
	}
	// Unbuffered: the goroutine must know whether anybody has taken the connection.
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
