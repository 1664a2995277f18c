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

// ackedGrace is how long the answer to WAIT may be on its way, beyond the time that WAIT may take.
const ackedGrace = time.Second

var errStranger = fmt.Errorf("the cluster client does not know the node to which the slot is on its way: %w",
	conn.ErrStranger)

// callAcked is Call with Replicas.
func (c *transport) callAcked(ctx context.Context, call *conn.Call) conn.Reply {
	var reply conn.Reply
	c.Batch(ctx, []conn.Call{*call}, func(_ int, r conn.Reply) { reply = r })
	return reply
}

// runAcked runs commands and then WAIT, for the most replicas and the longest time that any of the jobs asks for. It is
// one pipeline, so it has a connection for itself: WAIT speaks of what came over the same one.
func (c *transport) runAcked(ctx context.Context, r route, cmds []once, jobs []*conn.Job) ([]conn.Reply, error) {
	replicas, limit := 0, time.Millisecond // 0 would be for ever
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
		acked, _ := wait.Int() // without an answer nobody has acknowledged anything, as far as we know
		for i := range replies {
			replies[i].Acked = acked
		}
		return replies, nil
	})
}

// withAsking puts a pipeline together. ASKING holds for one command.
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

// ackedNode returns the client of the server that a route leads to.
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

// patient returns client with time enough to read the answer to a WAIT that takes as long as limit.
func patient(client *redis.Client, limit time.Duration) *redis.Client {
	if set := client.Options().ReadTimeout; set <= 0 || set >= limit+ackedGrace {
		return client // 0 and less are for ever
	}
	return client.WithTimeout(limit + ackedGrace)
}
