package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
)

// HandoffResult is how long it took from one process's call of Unlock until the other's Lock returned, which had been
// waiting before.
type HandoffResult struct {
	Latencies []float64 // nanoseconds
	Hung      int       // waits that did not end, and were begun anew

	// What clients sent in a second in which one held the lock and the other waited.
	Quiet float64
	Pings float64

	ServerCPU float64 // nanoseconds for each hand-over, with the waits before them; zero if it is not known
}

const (
	// mostWait is how long a wait for one hand-over may last. The slowest poller needs a quarter of a second.
	mostWait = 2 * time.Second

	// partnerTimeout is when a process gives the other one up.
	partnerTimeout = 10 * mostWait

	// A holder keeps the lock for this time, and up to as much again, after the other has called Lock: by then the
	// other waits. The second part is random so that no poller falls in step with it.
	settle = 3 * time.Millisecond
)

// relay is one process's part of Handoff. Holds are numbered; each of the two has every second.
type relay struct {
	job    *Job
	worker peer.Worker
	board  *board
	w      *witness
	meter  *engined.Meter
	random *rand.Rand
	result HandoffResult

	burning cpuUsage // since the hold of the number first
	first   int64    // 0: not yet
}

// handoff passes the lock between two processes until the time is over.
func handoff(ctx context.Context, p peer.Peer, j *Job, sent []string) (result *part, err error) {
	r := &relay{job: j, random: rand.New(rand.NewPCG(1, uint64(j.Index)))}
	if r.worker, err = p.Worker(peer.LockName); err != nil {
		return nil, err
	}
	if r.board, err = openBoard(j.Dir); err != nil {
		return nil, err
	}
	if r.w, err = openWitness(witnessPath(j.Dir)); err != nil {
		return nil, err
	}
	r.meter = engined.NewMeter(j.Redis, sent)
	defer func() { err = errors.Join(err, r.board.close(), r.w.close(), r.meter.Close()) }()
	holds, err := r.run(ctx)
	return &part{Handoff: &r.result, All: holds}, err
}

// run has every second hold. The first ones are not measured: connections are made and scripts loaded at their first
// use.
func (r *relay) run(ctx context.Context) (holds int64, err error) {
	counting := time.Now().Add(r.job.Warm)
	over := counting.Add(r.job.Time)
	for n := int64(r.job.Index); ; n += 2 {
		if err := until(partnerTimeout, func() bool { return r.board.held.Load() >= n }); err != nil {
			return holds, err
		}
		end, err := r.take(ctx, n, time.Now().After(counting))
		if err != nil {
			return holds, err
		}
		r.w.step(0)
		holds++
		last, err := r.hold(ctx, n, over)
		if err != nil {
			return holds, err
		}
		err = r.board.releases(ctx, r.worker)
		end()
		if err != nil || last {
			return holds, err
		}
	}
}

// take waits for the lock, and counts how long ago the other one called Unlock. A wait that was begun anew does not
// count.
func (r *relay) take(ctx context.Context, n int64, counts bool) (end func(), err error) {
	for {
		r.board.asked.Store(n + 1)
		b, err := lockWithin(ctx, r.worker, mostWait)
		if err != nil {
			return nil, err
		}
		if b.hung {
			r.result.Hung++
			counts = false
			continue
		}
		at, err := monotonic()
		if counts && n > 0 {
			r.result.Latencies = append(r.result.Latencies, float64(at-r.board.released.Load()))
		}
		return b.end, err
	}
}

// hold keeps the lock until the other one waits for it. It reports whether this process's part is over. The first
// process ends the job, when the time is over; the other one then has one hold more.
func (r *relay) hold(ctx context.Context, n int64, over time.Time) (last bool, err error) {
	r.board.held.Store(n + 1)
	r.burns(n, over)
	if n > 0 && r.board.last.Load() == n {
		return true, nil
	}
	if err := until(partnerTimeout, func() bool { return r.board.asked.Load() >= n+2 }); err != nil {
		return false, err
	}
	time.Sleep(r.job.Arrives + settle + time.Duration(r.random.Int64N(int64(settle))))
	if r.job.Index > 0 || time.Now().Before(over) {
		return false, nil
	}
	r.board.last.Store(n + 1)
	if r.first > 0 && n > r.first {
		_, its := r.burning.spent()
		r.result.ServerCPU = its / float64(n-r.first)
	}
	return true, r.listen(ctx)
}

// burns begins to count the server's time on processors when what went before no longer counts. One of the two does it
// for both.
func (r *relay) burns(n int64, over time.Time) {
	if r.job.Index == 0 && r.first == 0 && n > 0 && time.Now().After(over.Add(-r.job.Time)) {
		r.first, r.burning = n, startCPUUsage(r.job.PIDs)
	}
}

// listen counts what is sent while one holds and one waits.
func (r *relay) listen(ctx context.Context) error {
	if r.meter == nil || r.job.Quiet == 0 {
		return nil
	}
	if _, err := r.meter.Count(ctx); err != nil { // opens its connection
		return err
	}
	sent, err := rate(ctx, r.meter, r.job.Quiet)
	r.result.Quiet, r.result.Pings = sent.commands, sent.pings
	return err
}
