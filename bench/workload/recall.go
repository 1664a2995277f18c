package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
)

// recaller is one process's part of Recall: the first has a lock that the other one then wants. Each lock has a name of
// its own: a client that has to give back the same lock again and again no longer retains it.
type recaller struct {
	job     *Job
	peer    peer.Peer
	retains bool
	board   *board
	w       *witness
	random  *rand.Rand
	result  HandoffResult
}

// recall measures how long the second process waits for a lock. The first one retains it, where the peer does that, and
// the time begins with the call of Lock. Otherwise the first one holds it until the second waits, and the time begins
// with the call of Unlock, as in Handoff.
func recall(ctx context.Context, spec *peer.Spec, p peer.Peer, j *Job) (result *part, err error) {
	r := &recaller{job: j, peer: p, retains: spec.Retains, random: rand.New(rand.NewPCG(1, uint64(j.Index)))}
	if r.board, err = openBoard(j.Dir); err != nil {
		return nil, err
	}
	if r.w, err = openWitness(witnessPath(j.Dir)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.board.close(), r.w.close()) }()
	counting := time.Now().Add(j.Warm)
	over := counting.Add(j.Time)
	var holds int64
	for more := true; more; holds++ {
		worker, err := p.Worker("recall:" + strconv.FormatInt(holds, 10))
		if err != nil {
			return nil, err
		}
		if j.Index == 0 {
			more, err = r.have(ctx, worker, holds, over)
		} else {
			more, err = r.want(ctx, worker, holds, time.Now().After(counting))
		}
		if err != nil {
			return nil, err
		}
	}
	return &part{Handoff: &r.result, All: holds}, nil
}

// have takes lock n, and returns when the other process has given it back. It says before whether there are more.
func (r *recaller) have(ctx context.Context, worker peer.Worker, n int64, over time.Time) (more bool, err error) {
	end, err := lockAtLast(ctx, worker)
	if err != nil {
		return false, err
	}
	defer end()
	r.w.step(0)
	if r.retains {
		if err := worker.Unlock(ctx); err != nil {
			return false, err
		}
	}
	if more = time.Now().Before(over); !more {
		r.board.last.Store(n + 1)
	}
	r.board.held.Store(n + 1)
	if !r.retains {
		if err := until(partnerTimeout, func() bool { return r.board.asked.Load() > n }); err != nil {
			return false, err
		}
		r.settle() // by then the other waits
		if err := r.board.releases(ctx, worker); err != nil {
			return false, err
		}
	}
	return more, until(partnerTimeout, func() bool { return r.board.done.Load() > n })
}

// want takes lock n when the other process has had it, counts how long that took, and gives it back.
func (r *recaller) want(ctx context.Context, worker peer.Worker, n int64, counts bool) (more bool, err error) {
	if err := until(partnerTimeout, func() bool { return r.board.held.Load() > n }); err != nil {
		return false, err
	}
	if r.retains {
		r.settle() // the other rests, as who waits for this one does otherwise
	}
	begin, err := monotonic()
	if err != nil {
		return false, err
	}
	r.board.asked.Store(n + 1)
	b, err := lockWithin(ctx, worker, mostWait)
	if err != nil {
		return false, err
	}
	if b.hung {
		return false, errPartnerGone
	}
	defer b.end()
	at, err := monotonic()
	if err != nil {
		return false, err
	}
	if !r.retains {
		begin = r.board.released.Load()
	}
	if counts {
		r.result.Latencies = append(r.result.Latencies, float64(at-begin))
	}
	r.w.step(0)
	err = worker.Unlock(ctx)
	r.board.done.Store(n + 1)
	return r.board.last.Load() != n+1, err
}

// settle lets what went before come to rest.
func (r *recaller) settle() { time.Sleep(settle + time.Duration(r.random.Int64N(int64(settle)))) }
