// Batches: many calls, in one pipeline for each node. conn/batch.go has the rounds and the retries.

package goredislock

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// route is what the jobs of one pipeline have in common.
type route struct {
	node       *redis.Client // nil if redirected or asking
	redirected bool          // the cluster client finds the way
	asking     string        // the node to ask this time only, after ASK
	acked      bool          // WAIT follows
}

// Batch implements [conn.Conn].
func (c *transport) Batch(ctx context.Context, calls []conn.Call, done func(i int, r conn.Reply)) {
	conn.RunBatch(ctx, batcher{c}, calls, done)
}

// batcher is the transport as a [conn.Batcher].
type batcher struct{ *transport }

// RouteOf says how a job is sent now. Its error is a refusal: the client knows no owner of the slot.
func (b batcher) RouteOf(ctx context.Context, j *conn.Job) (route, error) {
	r := route{redirected: j.Try.Redirected, asking: j.Try.Asking, acked: j.Call.Replicas > 0}
	if r.redirected || r.asking != "" {
		return r, nil
	}
	var err error
	r.node, err = b.owner(ctx, keyOf(j.Call))
	return r, err
}

// RunPart runs one pipeline, and asks of each failed job whether to go on.
func (b batcher) RunPart(ctx context.Context, r route, jobs []*conn.Job) []conn.Outcome {
	ends := make([]conn.Outcome, len(jobs))
	for i, reply := range b.replies(ctx, r, jobs) {
		ends[i].Reply = reply
		if reply.Err != nil {
			wait, final := b.again(&jobs[i].Try, jobs[i].Call, r.node, reply.Err)
			ends[i] = conn.Outcome{Reply: conn.Reply{Err: final}, Again: final == nil, Wait: wait}
		}
	}
	return ends
}

// replies runs one pipeline and returns a reply for each job. An error of the whole pipeline is the reply to all.
func (b batcher) replies(ctx context.Context, r route, jobs []*conn.Job) []conn.Reply {
	cmds := commands(ctx, r, jobs)
	var replies []conn.Reply
	var err error
	if r.acked {
		replies, err = b.runAcked(ctx, r, cmds, jobs)
	} else {
		replies, err = within(ctx, b.transport, func() ([]conn.Reply, error) {
			if r.redirected {
				exec(ctx, b.cluster.Pipeline(), cmds)
			} else {
				exec(ctx, r.node.Pipeline(), cmds)
			}
			return repliesOf(cmds), nil
		})
	}
	// The error of a pipeline says nothing about a single command, so each job gets it and decides whether it may be
	// sent again.
	if err != nil {
		return slices.Repeat([]conn.Reply{{Err: err}}, len(jobs))
	}
	return replies
}

// commands builds the commands of jobs. The cluster client may redirect each to another node, so the source goes along
// with each once a server did not know it: no other command of the pipeline is sure to reach the same node.
func commands(ctx context.Context, r route, jobs []*conn.Job) []once {
	cmds := make([]once, len(jobs))
	for i, source := range conn.InSource(jobs) {
		j := jobs[i]
		cmds[i] = command(ctx, j.Call, source || r.redirected && j.Try.Evals > 0)
	}
	return cmds
}

// exec runs commands as one pipeline. Afterwards each command has its own error.
func exec(ctx context.Context, pipe redis.Pipeliner, cmds []once) {
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // only queues it
	}
	_, _ = pipe.Exec(ctx) // the first of the commands' errors
}

// repliesOf returns what has become of commands that were sent.
func repliesOf(cmds []once) []conn.Reply {
	replies := make([]conn.Reply, len(cmds))
	for i, cmd := range cmds {
		replies[i].Text, replies[i].Err = cmd.Text()
	}
	return replies
}
