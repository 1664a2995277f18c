package workload

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
)

// batchTime is how long a batch of acquisitions takes: long against a reading of the clock, short against a time slice,
// so that being preempted spoils one batch and not the median of all.
const batchTime = 50 * time.Microsecond

// serial takes and releases the lock until the time is over and returns the median of its batches.
func serial(ctx context.Context, p peer.Peer, j *Job) (*part, error) {
	worker, err := p.Worker(peer.LockName)
	if err != nil {
		return nil, err
	}
	const trial = 64
	once, err := batch(ctx, worker, trial) // also creates the file and warms the caches up
	if err != nil {
		return nil, err
	}
	n := max(1, int(float64(batchTime.Nanoseconds())/once))
	for begin := time.Now(); time.Since(begin) < j.Warm; {
		if _, err := batch(ctx, worker, n); err != nil {
			return nil, err
		}
	}
	var each []float64
	before := ownCPU()
	for begin := time.Now(); len(each) == 0 || time.Since(begin) < j.Time; {
		ns, err := batch(ctx, worker, n)
		if err != nil {
			return nil, err
		}
		each = append(each, ns)
	}
	return &part{PerOp: stats.Quantile(each, 0.5), CPU: (ownCPU() - before) / float64(n*len(each))}, nil
}

// batch returns the nanoseconds of one of n acquisitions with its release.
func batch(ctx context.Context, worker peer.Worker, n int) (float64, error) {
	begin := time.Now()
	for range n {
		if err := worker.Lock(ctx); err != nil {
			return 0, err
		}
		if err := worker.Unlock(ctx); err != nil {
			return 0, err
		}
	}
	return max(1, float64(time.Since(begin).Nanoseconds())) / float64(n), nil
}
