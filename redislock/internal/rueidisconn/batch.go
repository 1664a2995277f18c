package rueidisconn

import (
	"context"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
)

// mostPipelined is how many calls go in one pipeline. A server answers none of it before it has run all of it, and
// others wait meanwhile.
const mostPipelined = 512

// job is a call of a batch that has not ended yet.
type job struct {
	call *conn.Call
	i    int // its place in the batch
	try  try
}

// route is what the jobs of one pipeline have in common.
type route struct {
	node   *node // nil if it is not known
	asking string
	acked  bool
}

// Batch runs the calls.
func (c *Conn) Batch(ctx context.Context, calls []conn.Call, done func(i int, r conn.Reply)) {
	all := make([]job, len(calls))
	jobs := make([]*job, len(calls))
	for i := range calls {
		all[i] = job{call: &calls[i], i: i}
		jobs[i] = &all[i]
	}
	c.round(ctx, jobs, done)
}

// round runs the jobs, all routes at once. It returns when all have ended, those included that were sent elsewhere.
func (c *Conn) round(ctx context.Context, jobs []*job, done func(i int, r conn.Reply)) {
	routes := make(map[route][]*job)
	for _, j := range jobs {
		r := route{c.owner(j.call.Slot), j.try.asking, j.call.Replicas > 0}
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
func (c *Conn) runRoute(ctx context.Context, r route, jobs []*job, done func(i int, r conn.Reply)) {
	var again []*job
	waits := false
	for part := range slices.Chunk(jobs, mostPipelined) {
		for _, end := range c.runPart(ctx, r, part) {
			switch {
			case end.again:
				again = append(again, end.job)
				waits = waits || end.wait
			default:
				done(end.job.i, end.reply)
			}
		}
	}
	if len(again) == 0 {
		return
	}
	if waits && !pause(ctx) {
		for _, j := range again {
			done(j.i, conn.Reply{Err: &conn.RefusedError{Err: ctx.Err()}})
		}
		return
	}
	c.round(ctx, again, done)
}

// end is how one try of a job has ended.
type end struct {
	job         *job
	reply       conn.Reply
	again, wait bool // it is to be tried again, and after a pause
}

// runPart runs one pipeline.
func (c *Conn) runPart(ctx context.Context, r route, jobs []*job) []end {
	ends := make([]end, len(jobs))
	for i, j := range jobs {
		ends[i].job = j
	}
	var n *node
	var l *link
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
func (c *Conn) send(
	ctx context.Context, r route, n *node, l *link, jobs []*job,
) ([]resp.Answer, int) {
	if r.acked {
		return c.runAcked(ctx, n, jobs)
	}
	return l.pipeline(ctx, commandsOf(jobs)), 0
}

// take takes the result of a job's command.
func (e *end) take(n *node, l *link, r resp.Answer, acked int) {
	if r.Err != nil {
		var err error
		e.wait, err = e.job.try.next(n, l, e.job.call.Slot, r.Err)
		e.again = err == nil
		e.reply = conn.Reply{Err: err}
		return
	}
	e.reply = conn.Reply{Text: r.Text, Acked: acked}
	if l != nil {
		e.reply.Link = l.number
	}
}
