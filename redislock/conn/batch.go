package conn

import (
	"context"
	"slices"
	"sync"
)

// mostPipelined is how many calls go in one pipeline. A server answers none of it before it has run all of it, and
// others wait meanwhile.
const mostPipelined = 512

// Job is a call of a batch that has not ended yet.
type Job struct {
	Call *Call
	Try  Try // what has become of it so far
	i    int // its place in the batch
}

// Outcome is how one try of a job has ended: with a Reply, or with the wish to be tried again.
type Outcome struct {
	Reply Reply // how it has ended, unless Again
	Again bool  // it is to be tried again
	Wait  bool  // after a pause
}

// Batcher is a transport that runs batches. A route is what the jobs of one pipeline have in common.
type Batcher[Route comparable] interface {
	// RouteOf is how a job is to be sent now. With an error the job ends.
	RouteOf(ctx context.Context, j *Job) (Route, error)
	// RunPart sends jobs of one route as one pipeline, and says of each how that ended.
	RunPart(ctx context.Context, r Route, jobs []*Job) []Outcome
}

// RunBatch does what [Conn.Batch] promises: all routes at once, and again, in a new round, what is to be tried again.
func RunBatch[Route comparable](ctx context.Context, b Batcher[Route], calls []Call, done func(i int, r Reply)) {
	all := make([]Job, len(calls))
	jobs := make([]*Job, len(calls))
	for i := range calls {
		all[i] = Job{Call: &calls[i], i: i}
		jobs[i] = &all[i]
	}
	runRound(ctx, b, jobs, done)
}

// runRound runs the jobs. It returns when all have ended, those included that were sent elsewhere.
func runRound[Route comparable](ctx context.Context, b Batcher[Route], jobs []*Job, done func(i int, r Reply)) {
	routes := make(map[Route][]*Job)
	for _, j := range jobs {
		r, err := b.RouteOf(ctx, j)
		if err != nil {
			done(j.i, Reply{Err: err})
			continue
		}
		routes[r] = append(routes[r], j)
	}
	var others sync.WaitGroup
	for r, jobs := range routes {
		if len(routes) == 1 {
			runRoute(ctx, b, r, jobs, done)
		} else {
			others.Go(func() { runRoute(ctx, b, r, jobs, done) })
		}
	}
	others.Wait()
}

// runRoute runs jobs that go the same way, and then in a new round those of them that want to be tried again.
func runRoute[Route comparable](
	ctx context.Context, b Batcher[Route], r Route, jobs []*Job, done func(i int, r Reply),
) {
	var again []*Job
	wait := false
	for part := range slices.Chunk(jobs, mostPipelined) {
		for k, end := range b.RunPart(ctx, r, part) {
			if !end.Again {
				done(part[k].i, end.Reply)
				continue
			}
			again = append(again, part[k])
			wait = wait || end.Wait
		}
	}
	if len(again) == 0 {
		return
	}
	if wait {
		if err := Pause(ctx); err != nil {
			for _, j := range again {
				done(j.i, Reply{Err: err})
			}
			return
		}
	}
	runRound(ctx, b, again, done)
}

// InSource reports of each job of a pipeline whether its script is to be sent by its source. Where a server did not
// know it that is done once: what follows in the same pipeline can name it. Where that has failed before it is done for
// each.
func InSource(jobs []*Job) []bool {
	sources := make([]bool, len(jobs))
	var sent []*Script
	for i, j := range jobs {
		switch {
		case j.Try.Evals == 1:
			if sources[i] = !slices.Contains(sent, j.Call.Script); sources[i] {
				sent = append(sent, j.Call.Script)
			}
		case j.Try.Evals > 1:
			sources[i] = true
		}
	}
	return sources
}
