// Batches: many calls at once, in pipelines, each with its own retries. retry.go decides about each call; the
// transports (rueidisconn, goredislock) say how a call is routed and sent.

package conn

import (
	"context"
	"slices"
	"sync"
)

// mostPipelined is how many calls go in one pipeline. A server sends no answer before it has run them all, and serves
// nobody else meanwhile.
const mostPipelined = 512

// Job is a call of a batch that has not ended yet. The goroutine of its route owns it.
type Job struct {
	Call *Call // as it was given to Batch
	Try  Try   // what has become of it so far; RunPart keeps it up to date
	i    int   // its index in the batch
}

// Outcome is how one try of a job has ended: with a Reply, or with Again.
type Outcome struct {
	Reply Reply // how it has ended; not used with Again
	Again bool  // it must be tried again
	Wait  bool  // with Again: after a pause
}

// Batcher is a transport that runs batches. A Route is what the jobs of one pipeline have in common, such as the node.
type Batcher[Route comparable] interface {
	// RouteOf says how a job must be sent now. With an error the job ends, and the error is its reply. It is asked
	// again for each try, because the slot may have moved meanwhile.
	RouteOf(ctx context.Context, j *Job) (Route, error)
	// RunPart sends jobs of one route as one pipeline, and returns how each ended, in their order. It blocks for the
	// answers.
	RunPart(ctx context.Context, r Route, jobs []*Job) []Outcome
}

// RunBatch does what [Conn.Batch] promises. It sends to all routes at once. What must be tried again is routed anew in
// a new round.
func RunBatch[Route comparable](ctx context.Context, b Batcher[Route], calls []Call, done func(i int, r Reply)) {
	all := make([]Job, len(calls))
	jobs := make([]*Job, len(calls))
	for i := range calls {
		all[i] = Job{Call: &calls[i], i: i}
		jobs[i] = &all[i]
	}
	runRound(ctx, b, jobs, done)
}

// runRound runs the jobs. It returns when all have ended, also those that were redirected.
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
		// The usual case needs no goroutine: one server, or keys that share a slot.
		if len(routes) == 1 {
			runRoute(ctx, b, r, jobs, done)
		} else {
			others.Go(func() { runRoute(ctx, b, r, jobs, done) })
		}
	}
	others.Wait()
}

// runRoute runs the jobs of one route, and then in a new round those that must be tried again. Only these wait for the
// pause, and jobs of other routes go on.
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
	// One pause serves all: each job counts its own time (Try), not the pauses.
	if wait {
		if Pause(ctx) != nil {
			for _, j := range again {
				done(j.i, Reply{Err: GaveUp(ctx, j.Try.last)})
			}
			return
		}
	}
	runRound(ctx, b, again, done)
}

// InSource says for each job of a pipeline whether its script must be sent by its source. If the server did not know a
// script, one job sends the source, and the jobs behind it in the pipeline can name it. If that has failed before, each
// job sends the source.
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
