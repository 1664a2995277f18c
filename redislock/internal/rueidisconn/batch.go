// Batches: many calls, in one pipeline for each node. conn/batch.go has the rounds and the retries.

package rueidisconn

import (
	"context"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
)

// route is what the jobs of one pipeline have in common.
type route struct {
	// node is the owner of the slots, or nil if it is not known: then RunPart looks for it.
	node   *node
	asking string // the node to ask this time only, after ASK
	acked  bool   // WAIT follows, so the pipeline needs a connection for itself
}

// Batch implements [conn.Conn].
func (c *Conn) Batch(ctx context.Context, calls []conn.Call, done func(i int, r conn.Reply)) {
	conn.RunBatch(ctx, batcher{c}, calls, done)
}

// batcher is the Conn as one that runs batches.
type batcher struct{ *Conn }

// RouteOf never fails: what is not known is found out in RunPart, together for all jobs of the route.
func (b batcher) RouteOf(_ context.Context, j *conn.Job) (route, error) {
	return route{b.owner(j.Call.Slot), j.Try.Asking, j.Call.Replicas > 0}, nil
}

// RunPart runs one pipeline, over the link or, with WAIT behind it, over a private connection. If there is no link,
// nothing was sent, and all jobs end as refused: awaiting the link has used up their patience.
func (b batcher) RunPart(ctx context.Context, r route, jobs []*conn.Job) []conn.Outcome {
	ends := make([]conn.Outcome, len(jobs))
	var n *node
	var l *link
	var err error
	if r.acked {
		n, err = b.node(ctx, jobs[0].Call.Slot, r.asking)
	} else if l, err = b.link(ctx, jobs[0].Call.Slot, r.asking); err == nil {
		n = l.node
	}
	if err != nil {
		for i := range ends {
			ends[i].Reply.Err = jobs[i].Try.Told(conn.AsRefused(err))
		}
		return ends
	}
	var answers []resp.Answer
	acked := 0
	if r.acked {
		answers, acked = b.runAcked(ctx, n, jobs)
	} else {
		answers = l.pipeline(ctx, commandsOf(jobs))
	}
	for i, a := range answers {
		ends[i] = n.outcome(l, jobs[i], a, acked)
	}
	return ends
}

// outcome turns the answer to a job's command into its outcome. Only a reply over a link has a number that can be
// compared with that of a push.
func (n *node) outcome(l *link, j *conn.Job, a resp.Answer, acked int) conn.Outcome {
	if a.Err != nil {
		wait, final := n.again(&j.Try, l, j.Call.Slot, a.Err)
		return conn.Outcome{Reply: conn.Reply{Err: final}, Again: final == nil, Wait: wait}
	}
	reply := conn.Reply{Text: a.Text, Acked: acked}
	if l != nil {
		reply.Link = l.number
	}
	return conn.Outcome{Reply: reply}
}
