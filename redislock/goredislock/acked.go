// Calls that wait for replicas (WAIT). batch.go comes here; call.go through callAcked.

package goredislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// ackedGrace is how long the answer to WAIT may be on its way, beyond the time that WAIT itself may take.
const ackedGrace = time.Second

// errStranger is for ASK to a node that the cluster client has not heard of. It passes when the client has asked for
// the slots.
var errStranger = fmt.Errorf("the cluster client does not know the node to which the slot is on its way: %w",
	conn.ErrStranger)

// callAcked is Call with Replicas: a batch of one.
func (c *transport) callAcked(ctx context.Context, call *conn.Call) conn.Reply {
	var reply conn.Reply
	c.Batch(ctx, []conn.Call{*call}, func(_ int, r conn.Reply) { reply = r })
	return reply
}

// runAcked runs commands and then WAIT, for the most replicas and the longest time that any of the jobs asks for.
// go-redis sends a pipeline over one connection, which nothing else uses meanwhile: WAIT speaks of what was written on
// the same one.
func (c *transport) runAcked(ctx context.Context, r route, cmds []once, jobs []*conn.Job) ([]conn.Reply, error) {
	replicas, limit := 0, time.Millisecond // 0 would mean for ever
	for _, j := range jobs {
		replicas, limit = max(replicas, j.Call.Replicas), max(limit, j.Call.ReplicaTimeout)
	}
	wait := newOnce(ctx, "wait", replicas, limit.Milliseconds())
	return within(ctx, c, func() ([]conn.Reply, error) {
		node, err := c.ackedNode(ctx, r)
		if err != nil {
			return nil, err
		}
		exec(ctx, patient(node, limit).Pipeline(), withAsking(ctx, r, cmds, wait))
		replies := repliesOf(cmds)
		// Without an answer to WAIT no replica has acknowledged anything, as far as is known.
		acked, _ := wait.Int()
		for i := range replies {
			replies[i].Acked = acked
		}
		return replies, nil
	})
}

// withAsking puts a pipeline together. ASKING holds for one command, so it is sent before each.
func withAsking(ctx context.Context, r route, cmds []once, last once) []once {
	all := make([]once, 0, 2*len(cmds)+1)
	for _, cmd := range cmds {
		if r.asking != "" {
			all = append(all, newOnce(ctx, "asking"))
		}
		all = append(all, cmd)
	}
	return append(all, last)
}

// ackedNode returns the client of the server that a route leads to. After ASK the node has no slot of ours yet, so it
// is looked for by its address among all primaries.
func (c *transport) ackedNode(ctx context.Context, r route) (*redis.Client, error) {
	if r.asking == "" {
		return r.node, nil
	}
	var mu sync.Mutex // guards found
	var found *redis.Client
	err := c.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr == r.asking {
			mu.Lock()
			defer mu.Unlock()
			found = node
		}
		return nil
	})
	if found == nil {
		return nil, errors.Join(errStranger, err)
	}
	return found, nil
}

// patient returns client, or a copy of it that reads long enough for a WAIT of that time. The user's ReadTimeout may be
// shorter.
func patient(client *redis.Client, limit time.Duration) *redis.Client {
	if set := client.Options().ReadTimeout; set <= 0 || set >= limit+ackedGrace {
		return client // 0 and less mean for ever
	}
	return client.WithTimeout(limit + ackedGrace)
}
