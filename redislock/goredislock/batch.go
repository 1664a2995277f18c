package goredislock

import (
	"context"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// longestPipeline is how many calls go in one pipeline. A server answers none of it before it has run all of it, and
// others wait meanwhile.
const longestPipeline = 512

// job is a call of a batch that has not ended yet.
type job struct {
	call *redislock.Call
	i    int // its place in the batch
	try  try
}

// route is what the jobs of one pipeline have in common.
type route struct {
	node       *redis.Client // nil if redirected, and if asking
	redirected bool          // the cluster client finds the way
	asking     string
	acked      bool
}

// Batch runs the calls.
func (c *conn) Batch(ctx context.Context, calls []redislock.Call, done func(i int, r redislock.Reply)) {
	all := make([]job, len(calls))
	jobs := make([]*job, len(calls))
	for i := range calls {
		all[i] = job{call: &calls[i], i: i, try: try{direct: calls[i].Replicas > 0}}
		jobs[i] = &all[i]
	}
	c.round(ctx, jobs, done)
}

// round runs the jobs, all routes at once. It returns when all have ended, those included that were sent elsewhere.
func (c *conn) round(ctx context.Context, jobs []*job, done func(i int, r redislock.Reply)) {
	routes := make(map[route][]*job)
	for _, j := range jobs {
		r, err := c.routeOf(ctx, j)
		if err != nil {
			done(j.i, redislock.Reply{Err: err})
			continue
		}
		routes[r] = append(routes[r], j)
	}
	var all sync.WaitGroup
	for r, jobs := range routes {
		if len(routes) == 1 {
			c.runRoute(ctx, r, jobs, done)
			return
		}
		all.Go(func() { c.runRoute(ctx, r, jobs, done) })
	}
	all.Wait()
}

func (c *conn) routeOf(ctx context.Context, j *job) (route, error) {
	r := route{redirected: j.try.redirected, asking: j.try.asking, acked: j.try.direct}
	if r.redirected || r.asking != "" {
		return r, nil
	}
	var err error
	r.node, err = c.owner(ctx, keyOf(j.call))
	return r, err
}

// runRoute runs jobs that go the same way, and then in a new round those of them that want to be tried again.
func (c *conn) runRoute(ctx context.Context, r route, jobs []*job, done func(i int, r redislock.Reply)) {
	var again []*job
	wait := false
	for part := range slices.Chunk(jobs, longestPipeline) {
		for k, reply := range c.runPart(ctx, r, part) {
			j := part[k]
			if reply.Err == nil {
				done(j.i, reply)
				continue
			}
			pauses, final := j.try.next(c, reply.Err)
			if final != nil {
				done(j.i, redislock.Reply{Err: final})
				continue
			}
			again = append(again, j)
			wait = wait || pauses
		}
	}
	if len(again) == 0 {
		return
	}
	if wait && !pause(ctx) {
		for _, j := range again {
			done(j.i, redislock.Reply{Err: &redislock.RefusedError{Err: ctx.Err()}})
		}
		return
	}
	c.round(ctx, again, done)
}

// runPart runs one pipeline and returns a reply for each job.
func (c *conn) runPart(ctx context.Context, r route, jobs []*job) []redislock.Reply {
	cmds := commands(ctx, r, jobs)
	var replies []redislock.Reply
	var err error
	if r.acked {
		replies, err = c.runAcked(ctx, r, cmds, jobs)
	} else {
		replies, err = within(ctx, c, func() ([]redislock.Reply, error) {
			if r.redirected {
				exec(ctx, c.cluster.Pipeline(), cmds)
			} else {
				exec(ctx, r.node.Pipeline(), cmds)
			}
			return repliesOf(cmds), nil
		})
	}
	if err != nil {
		return slices.Repeat([]redislock.Reply{{Err: err}}, len(jobs))
	}
	return replies
}

// commands builds the commands of jobs. A script that the server does not know is sent once: what follows in the same
// pipeline can name it, unless it goes to another node or that has failed before.
func commands(ctx context.Context, r route, jobs []*job) []once {
	cmds := make([]once, len(jobs))
	var sent []*redislock.Script
	for i, j := range jobs {
		source := j.try.evals > 0
		if j.try.evals == 1 && !r.redirected {
			source = !slices.Contains(sent, j.call.Script)
			sent = append(sent, j.call.Script)
		}
		cmds[i] = command(ctx, j.call, source)
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

func repliesOf(cmds []once) []redislock.Reply {
	replies := make([]redislock.Reply, len(cmds))
	for i, cmd := range cmds {
		replies[i].Text, replies[i].Err = cmd.Text()
	}
	return replies
}
