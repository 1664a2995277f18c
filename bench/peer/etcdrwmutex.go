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

func etcdRWMutex() Spec {
	return Spec{
		Name: "recipe.RWMutex",
		Does: "RWMutex of the experimental recipes of etcd's client, with reads and writes as interlock's and a default session for " +
			"each goroutine: a key of the session's lease, a read of the nearest key in the way, a watch on that, and a key deleted; " +
			"a wait cannot be ended",
		Engine: engined.Etcd, Shares: Readers,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{at.Server}, Logger: zap.NewNop()})
			if err != nil {
				return nil, err
			}
			return &etcdRWMutexes{client: c, prefix: at.run() + lockName}, nil
		},
	}
}

type etcdRWMutexes struct {
	client   *clientv3.Client
	prefix   string
	mix      mix
	sessions []*concurrency.Session
}

// Worker returns an RWMutex in a session of its own.
func (e *etcdRWMutexes) Worker() (Worker, error) {
	s, err := concurrency.NewSession(e.client)
	if err != nil {
		return nil, err
	}
	e.sessions = append(e.sessions, s)
	return &etcdRWWorker{chance: e.mix.next(), mutex: recipe.NewRWMutex(s, e.prefix)}, nil
}

// Close ends sessions and client.
func (e *etcdRWMutexes) Close() error {
	var errs []error
	for _, s := range e.sessions {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, e.client.Close())...)
}

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
