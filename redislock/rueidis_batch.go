package redislock

import (
	"context"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/redislock/internal/resp"
)

// rueidisPipeline is how many calls go in one pipeline. A server answers none of it before it has run all of it, and
// others wait meanwhile.
const rueidisPipeline = 512

// rueidisJob is a call of a batch that has not ended yet.
type rueidisJob struct {
	call *Call
	i    int // its place in the batch
	try  rueidisTry
}

// rueidisRoute is what the jobs of one pipeline have in common.
type rueidisRoute struct {
	node   *rueidisNode // nil if it is not known
	asking string
	acked  bool
}

// Batch runs the calls.
func (c *rueidisConn) Batch(ctx context.Context, calls []Call, done func(i int, r Reply)) {
	all := make([]rueidisJob, len(calls))
	jobs := make([]*rueidisJob, len(calls))
	for i := range calls {
		all[i] = rueidisJob{call: &calls[i], i: i}
		jobs[i] = &all[i]
	}
	c.round(ctx, jobs, done)
}

// round runs the jobs, all routes at once. It returns when all have ended, those included that were sent elsewhere.
func (c *rueidisConn) round(ctx context.Context, jobs []*rueidisJob, done func(i int, r Reply)) {
	routes := make(map[rueidisRoute][]*rueidisJob)
	for _, j := range jobs {
		r := rueidisRoute{c.owner(j.call.Slot), j.try.asking, j.call.Replicas > 0}
		routes[r] = append(routes[r], j)
	}
	var others sync.WaitGroup
	first := true
	for r, jobs := range routes {
		if first && len(routes) == 1 {
			c.runRoute(ctx, r, jobs, done)
		} else {
			others.Go(func() { c.runRoute(ctx, r, jobs, done) })
		}
	}
	others.Wait()
}

// runRoute runs jobs that go to the same node, and then in a new round those of them that want to be tried again.
func (c *rueidisConn) runRoute(ctx context.Context, r rueidisRoute, jobs []*rueidisJob, done func(i int, r Reply)) {
	var again []*rueidisJob
	pause := false
	for part := range slices.Chunk(jobs, rueidisPipeline) {
		for _, end := range c.runPart(ctx, r, part) {
			switch {
			case end.again:
				again = append(again, end.job)
				pause = pause || end.wait
			default:
				done(end.job.i, end.reply)
			}
		}
	}
	if len(again) == 0 {
		return
	}
	if pause && !rueidisPause(ctx) {
		for _, j := range again {
			done(j.i, Reply{Err: &RefusedError{Err: ctx.Err()}})
		}
		return
	}
	c.round(ctx, again, done)
}

// rueidisEnd is how one try of a job has ended.
type rueidisEnd struct {
	job         *rueidisJob
	reply       Reply
	again, wait bool // it is to be tried again, and after a pause
}

// runPart runs one pipeline.
func (c *rueidisConn) runPart(ctx context.Context, r rueidisRoute, jobs []*rueidisJob) []rueidisEnd {
	ends := make([]rueidisEnd, len(jobs))
	for i, j := range jobs {
		ends[i].job = j
	}
	var n *rueidisNode
	var l *rueidisLink
	var err error
	if r.acked {
		n, err = c.node(ctx, jobs[0].call.Slot, r.asking)
	} else if l, err = c.link(ctx, jobs[0].call.Slot, r.asking); err == nil {
		n = l.node
	}
	if err != nil {
		for i := range ends {
			ends[i].reply.Err = refusedIf(true, err)
		}
		return ends
	}
	texts, acked := c.send(ctx, r, n, l, jobs)
	for i := range ends {
		ends[i].take(n, l, texts[i], acked)
	}
	return ends
}

// send sends one pipeline, over the link or with WAIT behind it.
func (c *rueidisConn) send(
	ctx context.Context, r rueidisRoute, n *rueidisNode, l *rueidisLink, jobs []*rueidisJob,
) ([]resp.Answer, int) {
	if r.acked {
		return c.runAcked(ctx, n, jobs)
	}
	return l.pipeline(ctx, commandsOf(jobs)), 0
}

// take takes the result of a job's command.
func (e *rueidisEnd) take(n *rueidisNode, l *rueidisLink, r resp.Answer, acked int) {
	if r.Err != nil {
		var err error
		e.wait, err = e.job.try.next(n, l, e.job.call.Slot, r.Err)
		e.again = err == nil
		e.reply = Reply{Err: err}
		return
	}
	e.reply = Reply{Text: r.Text, Acked: acked}
	if l != nil {
		e.reply.Link = l.number
	}
}
