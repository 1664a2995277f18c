package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
)

// turn is how long a peer locks before it is the next one's turn. Whether a client and its server happen to be on the
// same processor makes more of a difference than any library does, and lasts for a good while. So all peers have their
// turns within such a while.
const turn = 5 * time.Millisecond

// Turn is what one peer's turns have brought, each in nanoseconds of one acquisition with its release: the median of
// the time, and the means of the time on processors, as in a Result; and the times of the single ones.
type Turn struct {
	PerOp, CPU, ServerCPU float64

	RoundTrips float64 // how often it asks the server and waits

	Single stats.Histogram
}

// turns measures several peers in one process, in turns, in another order each time. Of each it returns the median of
// its turns. The peers end with the process.
func turns(ctx context.Context, peers []peer.Spec, j *Job) (*part, error) {
	if j.Apart {
		runtime.GOMAXPROCS(1)
		if err := pin(0, clientProcessor); err != nil {
			return nil, err
		}
	}
	workers := make([]peer.Worker, len(j.Peers))
	for i, name := range j.Peers {
		_, w, err := openOne(ctx, peers, name, "turns:"+name, j.place())
		if err == nil {
			err = firstTurns(ctx, w, j.Warm) // also loads the scripts and warms the caches up
		}
		if err != nil {
			return nil, err
		}
		workers[i] = w
	}
	p, err := openProbe(ctx, j)
	if err != nil {
		return nil, err
	}
	all, err := takeTurns(ctx, j, workers, &p)
	if err != nil {
		return nil, err
	}
	sum := &part{Turns: map[string]Turn{}, RoundTrip: p.roundTrip()}
	for i, name := range j.Peers {
		t := all[i].sum()
		if t.RoundTrips, err = roundTrips(ctx, peers, name, j); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sum.Turns[name] = t
	}
	return sum, nil
}

// takeTurns goes on until the time for all of them is over, and everybody had one.
func takeTurns(ctx context.Context, j *Job, workers []peer.Worker, p *probing) ([]taken, error) {
	all := make([]taken, len(workers))
	random := rand.New(rand.NewPCG(j.Seed, 0))
	for end := time.Now().Add(j.Time * time.Duration(len(workers))); all[0].each == nil || time.Now().Before(end); {
		if err := p.turn(); err != nil {
			return nil, err
		}
		for _, i := range random.Perm(len(workers)) {
			if err := all[i].turn(ctx, workers[i], j.PIDs); err != nil {
				return nil, fmt.Errorf("%s: %w", j.Peers[i], err)
			}
		}
	}
	return all, nil
}

// taken are the turns of a peer.
type taken struct {
	each     []float64 // nanoseconds of one acquisition, the mean of a turn
	single   stats.Histogram
	own, its float64 // on processors, in all
	times    int
}

func (t *taken) turn(ctx context.Context, worker peer.Worker, server []int) error {
	b := startCPUUsage(server)
	ns, times, err := oneTurn(ctx, worker, &t.single)
	own, its := b.spent()
	t.each = append(t.each, ns)
	t.own, t.its, t.times = t.own+own, t.its+its, t.times+times
	return err
}

func (t *taken) sum() Turn {
	n := float64(t.times)
	return Turn{PerOp: stats.Quantile(t.each, 0.5), CPU: t.own / n, ServerCPU: t.its / n, Single: t.single}
}

// probing measures round trips among the turns of the peers, as long as one of these: what else the machine does meets
// both.
type probing struct {
	probe *distance.Probe // nil if nobody is far away
	each  []float64
}

func openProbe(ctx context.Context, j *Job) (p probing, err error) {
	if j.Far != "" {
		p.probe, err = distance.Dial(ctx, j.Far)
	}
	return p, err
}

func (p *probing) turn() error {
	if p.probe == nil {
		return nil
	}
	for begin := time.Now(); ; {
		ns, err := p.probe.Trip()
		if err != nil {
			return err
		}
		p.each = append(p.each, ns)
		if time.Since(begin) >= turn {
			return nil
		}
	}
}

// roundTrip is the median; zero if nobody is far away.
func (p *probing) roundTrip() float64 {
	if p.probe == nil {
		return 0
	}
	return stats.Quantile(p.each, 0.5)
}

// openOne opens a peer and a worker of a lock of its own: the turns of one must not find what another one has left.
func openOne(ctx context.Context, peers []peer.Spec, name, lock string, at peer.Place) (peer.Peer, peer.Worker, error) {
	spec, err := find(peers, name)
	if err != nil {
		return nil, nil, err
	}
	p, err := spec.Open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	w, err := p.Worker(lock)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return p, w, nil
}

func firstTurns(ctx context.Context, worker peer.Worker, warm time.Duration) error {
	for begin := time.Now(); time.Since(begin) < warm; {
		if _, _, err := oneTurn(ctx, worker, &stats.Histogram{}); err != nil {
			return err
		}
	}
	return nil
}

// oneTurn returns the nanoseconds of an acquisition with its release, and how many there were, and adds the time of
// each to single.
func oneTurn(ctx context.Context, worker peer.Worker, single *stats.Histogram) (ns float64, n int, err error) {
	begin := time.Now()
	last := time.Duration(0)
	for n = 1; ; n++ {
		if err := worker.Lock(ctx); err != nil {
			return 0, n, err
		}
		if err := worker.Unlock(ctx); err != nil {
			return 0, n, err
		}
		spent := time.Since(begin)
		single.Add(spent - last)
		if last = spent; spent >= turn {
			return float64(spent.Nanoseconds()) / float64(n), n, nil
		}
	}
}
