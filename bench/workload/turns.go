package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
)

// turn is how long a peer locks before it is the next one's turn. Whether a client and its server happen to be on the same
// processor makes more of a difference than any library does, and lasts for a good while. So all peers have their turns
// within such a while.
const turn = 5 * time.Millisecond

// turns measures several peers in one process, in turns, in another order each time. Of each it returns the median of its
// turns.
func turns(ctx context.Context, peers []peer.Spec, j *Job) (*part, error) {
	if j.Apart {
		runtime.GOMAXPROCS(1)
		if err := pin(0, clientProcessor); err != nil {
			return nil, err
		}
	}
	workers := make([]peer.Worker, len(j.Peers))
	for i, name := range j.Peers {
		p, err := openOne(ctx, peers, name, j)
		if err != nil {
			return nil, err
		}
		if workers[i], err = p.Worker(); err != nil {
			return nil, err
		}
		// Also loads the scripts and warms the caches up.
		if err := firstTurns(ctx, workers[i], j.Warm); err != nil {
			return nil, err
		}
	}
	each := make([][]float64, len(workers))
	random := rand.New(rand.NewPCG(j.Seed, 0))
	for end := time.Now().Add(j.Time * time.Duration(len(workers))); len(each[0]) == 0 || time.Now().Before(end); {
		for _, i := range random.Perm(len(workers)) {
			ns, err := oneTurn(ctx, workers[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", j.Peers[i], err)
			}
			each[i] = append(each[i], ns)
		}
	}
	sum := &part{Turns: map[string]float64{}}
	for i, name := range j.Peers {
		sum.Turns[name] = stats.Median(each[i])
	}
	return sum, nil // the peers end with the process
}

// openOne opens a peer with a lock of its own: the turns of one must not find what another one has left.
func openOne(ctx context.Context, peers []peer.Spec, name string, j *Job) (peer.Peer, error) {
	spec, err := find(peers, name)
	if err != nil {
		return nil, err
	}
	p, err := spec.Open(ctx, j.place())
	if err != nil {
		return nil, err
	}
	keyed, ok := p.(peer.Keyed)
	if !ok {
		return nil, fmt.Errorf("%s knows only one lock", name)
	}
	return alias{p, keyed, "turns:" + name}, nil
}

// alias is a peer with another lock.
type alias struct {
	peer.Peer
	keyed peer.Keyed
	name  string
}

// Worker returns the other lock.
func (a alias) Worker() (peer.Worker, error) { return a.keyed.WorkerOn(a.name) }

func firstTurns(ctx context.Context, worker peer.Worker, warm time.Duration) error {
	for begin := time.Now(); time.Since(begin) < warm; {
		if _, err := oneTurn(ctx, worker); err != nil {
			return err
		}
	}
	return nil
}

// oneTurn returns the nanoseconds of an acquisition with its release.
func oneTurn(ctx context.Context, worker peer.Worker) (float64, error) {
	begin := time.Now()
	for n := 1; ; n++ {
		if err := worker.Lock(ctx); err != nil {
			return 0, err
		}
		if err := worker.Unlock(ctx); err != nil {
			return 0, err
		}
		if spent := time.Since(begin); spent >= turn {
			return float64(spent.Nanoseconds()) / float64(n), nil
		}
	}
}
