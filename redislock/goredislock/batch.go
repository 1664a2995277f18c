package goredislock

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// route is what the jobs of one pipeline have in common.
type route struct {
	node       *redis.Client // nil if redirected, and if asking
	redirected bool          // the cluster client finds the way
	asking     string
	acked      bool
}

// Batch runs the calls.
func (c *transport) Batch(ctx context.Context, calls []conn.Call, done func(i int, r conn.Reply)) {
	conn.RunBatch(ctx, batcher{c}, calls, done)
}

// batcher is the transport as one that runs batches.
type batcher struct{ *transport }

// RouteOf is how a job is to be sent now.
func (b batcher) RouteOf(ctx context.Context, j *conn.Job) (route, error) {
	r := route{redirected: j.Try.Redirected, asking: j.Try.Asking, acked: j.Call.Replicas > 0}
	if r.redirected || r.asking != "" {
		return r, nil
	}
	var err error
	r.node, err = b.owner(ctx, keyOf(j.Call))
	return r, err
}

// RunPart runs one pipeline.
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

// replies runs one pipeline and returns a reply for each job.
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
	if err != nil {
		return slices.Repeat([]conn.Reply{{Err: err}}, len(jobs))
	}
	return replies
}

// commands builds the commands of jobs. What the cluster client redirects may go to a node of its own each, so the
// source goes along each time.
func commands(ctx context.Context, r route, jobs []*conn.Job) []once {
	cmds := make([]once, len(jobs))
	for i, source := range conn.InSource(jobs) {
		j := jobs[i]
		cmds[i] = command(ctx, j.Call, source || r.redirected && j.Try.Evals > 0)
	}
	return cmds
}

// exec runs commands as one pipeline. Each command has its own error afterwards.
func exec(ctx context.Context, pipe redis.Pipeliner, cmds []once) {
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // only queues it
	}
	_, _ = pipe.Exec(ctx) // the first of the commands' errors
}

func repliesOf(cmds []once) []conn.Reply {
	replies := make([]conn.Reply, len(cmds))
	for i, cmd := range cmds {
		replies[i].Text, replies[i].Err = cmd.Text()
	}
	return replies
}
