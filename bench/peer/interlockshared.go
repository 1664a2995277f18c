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

func interlockRWOnRedis() Spec {
	return Spec{
		Name:  "interlock-redis-rw",
		Does:  "the same with RWMutex: RLock for 95 % of the acquisitions, chosen at random, and Lock for the others",
		Redis: true, Shares: Readers,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			c, err := interlock.Open(ctx, "redis://"+at.Redis, &interlock.Options{Lease: at.Lease})
			if err != nil {
				return nil, err
			}
			return &readWrite{client: c, name: lockName}, nil
		},
	}
}

func interlockRWOnEtcd() Spec {
	return Spec{
		Name:   "interlock-etcd-rw",
		Does:   "interlock on etcdlock with RWMutex: RLock for 95 % of the acquisitions, chosen at random, and Lock for the others",
		Engine: engined.Etcd, Shares: Readers,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			c, err := interlock.Open(ctx, URL(engined.Etcd, at.Server), &interlock.Options{Lease: at.Lease})
			if err != nil {
				return nil, err
			}
			return &readWrite{client: c, name: at.run() + lockName}, nil
		},
	}
}

// readWrite is interlock's RWMutex.
type readWrite struct {
	client *interlock.Client
	name   string
	mix    mix
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
func (p *readWrite) Worker() (Worker, error) {
	return &readWriteWorker{lock: p.client.RWMutex(p.name, nil), chance: p.mix.next()}, nil
}

// Close closes the client.
func (p *readWrite) Close() error { return p.client.Close() }

type readWriteWorker struct {
	*chance
	lock *interlock.RWMutex
	held *interlock.Lease
}

// Lock is RLock or Lock.
func (w *readWriteWorker) Lock(ctx context.Context) (err error) {
	if w.draw() {
		w.held, err = w.lock.RLock(ctx)
	} else {
		w.held, err = w.lock.Lock(ctx)
	}
	return err
}

// Unlock is Lease.Unlock.
func (w *readWriteWorker) Unlock(ctx context.Context) error { return w.held.Unlock(ctx) }

func interlockSemOnRedis() Spec {
	return Spec{
		Name:  "interlock-redis-sem",
		Does:  "the same with a Semaphore of 8 permits, one for each acquisition",
		Redis: true, Shares: Several,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			c, err := interlock.Open(ctx, "redis://"+at.Redis, &interlock.Options{Lease: at.Lease})
			if err != nil {
				return nil, err
			}
			return &semaphore{client: c}, nil
		},
	}
}

// semaphore is interlock's Semaphore.
type semaphore struct{ client *interlock.Client }

// Worker returns a worker that takes one permit each time.
func (p *semaphore) Worker() (Worker, error) {
	return &semaphoreWorker{sem: p.client.Semaphore(lockName, Permits, nil)}, nil
}

// Close closes the client.
func (p *semaphore) Close() error { return p.client.Close() }

type semaphoreWorker struct {
	sem  *interlock.Semaphore
	held *interlock.Lease
}

// Lock is Acquire.
func (w *semaphoreWorker) Lock(ctx context.Context) (err error) {
	w.held, err = w.sem.Acquire(ctx, 1)
	return err
}

// Unlock is Lease.Unlock.
func (w *semaphoreWorker) Unlock(ctx context.Context) error { return w.held.Unlock(ctx) }
