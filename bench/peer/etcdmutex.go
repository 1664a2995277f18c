package peer

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/bench/engined"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.uber.org/zap"
)

func etcdMutex() Spec {
	return Spec{
		Name: "concurrency.Mutex",
		Does: "concurrency.Mutex of etcd's client with its default session, one for each goroutine, because " +
			"goroutines that share a session all have the lock at once: a transaction that makes a key of the " +
			"session's lease, a watch on the predecessor, and a key deleted",
		Engine: engined.Etcd,
		Open: func(_ context.Context, at Place) (Peer, error) {
			return openSessions(at, func(s *concurrency.Session, key string) Worker {
				return etcdWorker{concurrency.NewMutex(s, key)}
			})
		},
	}
}

func etcdRWMutex() Spec {
	var m mix
	return Spec{
		Name: "recipe.RWMutex",
		Does: "RWMutex of the experimental recipes of etcd's client, with reads and writes as interlock's and a " +
			"default session for each goroutine: a key of the session's lease, a read of the nearest key in the way, " +
			"a watch on that, and a key deleted; a wait cannot be ended",
		Engine: engined.Etcd, Shares: Readers,
		Open: func(_ context.Context, at Place) (Peer, error) {
			return openSessions(at, func(s *concurrency.Session, key string) Worker {
				return &etcdRWWorker{chance: m.next(), mutex: recipe.NewRWMutex(s, key)}
			})
		},
	}
}

// sessions are of etcd's client, one for each worker.
type sessions struct {
	client  *clientv3.Client
	space   string
	seconds int // of a session; 0 is its default
	lockOn  func(s *concurrency.Session, key string) Worker
	all     []*concurrency.Session
}

func openSessions(at Place, lockOn func(s *concurrency.Session, key string) Worker) (Peer, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at.Server}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	return &sessions{client: c, space: at.run(), seconds: int(at.leaseOr(0).Seconds()), lockOn: lockOn}, nil
}

// Worker returns a lock in a session of its own.
func (e *sessions) Worker(name string) (Worker, error) {
	s, err := concurrency.NewSession(e.client, concurrency.WithTTL(e.seconds))
	if err != nil {
		return nil, err
	}
	e.all = append(e.all, s)
	return e.lockOn(s, e.space+name), nil
}

// Close ends sessions and client.
func (e *sessions) Close() error {
	var errs []error
	for _, s := range e.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, e.client.Close())...)
}

type etcdWorker struct{ mutex *concurrency.Mutex }

// Lock is Mutex.Lock.
func (w etcdWorker) Lock(ctx context.Context) error { return w.mutex.Lock(ctx) }

// Unlock is Mutex.Unlock.
func (w etcdWorker) Unlock(ctx context.Context) error { return w.mutex.Unlock(ctx) }

type etcdRWWorker struct {
	*chance
	mutex *recipe.RWMutex
}

// Lock is RWMutex.RLock or Lock. It knows no context.
func (w *etcdRWWorker) Lock(context.Context) error {
	if w.draw() {
		return w.mutex.RLock()
	}
	return w.mutex.Lock()
}

// Unlock is RUnlock or Unlock.
func (w *etcdRWWorker) Unlock(context.Context) error {
	if w.Reads() {
		return w.mutex.RUnlock()
	}
	return w.mutex.Unlock()
}
