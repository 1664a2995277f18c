package peer

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/engined"
)

// Permits is how many may be inside at once with the peers that are semaphores.
const Permits = 8

// ReadsOf is how many of ReadsIn acquisitions are reads, with the peers that know reads.
const (
	ReadsOf = 19
	ReadsIn = 20
)

// Sharing says who may be inside together.
type Sharing string

// The ways.
const (
	Nobody  Sharing = ""
	Readers Sharing = "readers" // and one writer alone
	Several Sharing = "several" // as many as Permits
)

// Shared is a worker that others may be inside with.
type Shared interface {
	Worker
	// Reads reports whether what the last Lock took is shared with others that do.
	Reads() bool
}

// interlockRW is interlock's RWMutex on an engine.
func interlockRW(engine string) Spec {
	return Spec{
		Name: "interlock-" + engine + "-rw",
		Does: "interlock on " + packageOf[engine] +
			" with RWMutex: RLock for 95 % of the acquisitions, chosen at random, " +
			"and Lock for the others",
		Redis: engine == engined.Redis, Engine: otherThanRedis(engine), Shares: Readers,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			l, err := openLocks(ctx, at, engine, interlock.Options{})
			return &readWrite{locks: l}, err
		},
	}
}

// readWrite is interlock's RWMutex.
type readWrite struct {
	*locks
	mix mix
}

// mix makes for each worker a sequence of its own of reads and writes, the same in each run.
type mix struct{ workers atomic.Uint64 }

func (m *mix) next() *chance {
	return &chance{random: rand.New(rand.NewPCG(m.workers.Add(1), 0))}
}

// chance says for one worker what comes next.
type chance struct {
	random *rand.Rand
	reads  bool
}

func (c *chance) draw() (reads bool) {
	c.reads = c.random.IntN(ReadsIn) < ReadsOf
	return c.reads
}

// Reads says which it was.
func (c *chance) Reads() bool { return c.reads }

// Worker returns a worker that reads and writes.
func (p *readWrite) Worker(name string) (Worker, error) {
	lock := p.client.RWMutex(p.space+name, nil)
	w := &readWriteWorker{chance: p.mix.next()}
	w.lock = func(ctx context.Context) (*interlock.Lease, error) {
		if w.draw() {
			return lock.RLock(ctx)
		}
		return lock.Lock(ctx)
	}
	return w, nil
}

type readWriteWorker struct {
	*chance
	lease
}

// interlockSem is interlock's Semaphore on Redis.
func interlockSem() Spec {
	return Spec{
		Name:  "interlock-redis-sem",
		Does:  "interlock on redislock with a Semaphore of 8 permits, one for each acquisition",
		Redis: true, Shares: Several,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			l, err := openLocks(ctx, at, engined.Redis, interlock.Options{})
			return &semaphore{l}, err
		},
	}
}

// semaphore is interlock's Semaphore.
type semaphore struct{ *locks }

// Worker returns a worker that takes one permit each time.
func (p *semaphore) Worker(name string) (Worker, error) {
	permits := p.client.Semaphore(p.space+name, Permits, nil)
	return &lease{lock: func(ctx context.Context) (*interlock.Lease, error) { return permits.Acquire(ctx, 1) }}, nil
}
