package peer

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/bench/engined"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func etcdMutex() Spec {
	return Spec{
		Name: "concurrency.Mutex",
		Does: "concurrency.Mutex of etcd's client with its default session, one for each goroutine, because goroutines that " +
			"share a session all have the lock at once: a transaction that makes a key of the session's lease, a watch on the " +
			"predecessor, and a key deleted",
		Engine: engined.Etcd,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{at.Server}, Logger: zap.NewNop()})
			if err != nil {
				return nil, err
			}
			return &etcdMutexes{client: c, space: at.run(), seconds: int(at.leaseOr(0).Seconds())}, nil
		},
	}
}

type etcdMutexes struct {
	client   *clientv3.Client
	space    string
	seconds  int // of a session; 0 is its default
	sessions []*concurrency.Session
}

// Worker returns a Mutex in a session of its own.
func (e *etcdMutexes) Worker() (Worker, error) { return e.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (e *etcdMutexes) WorkerOn(name string) (Worker, error) {
	s, err := concurrency.NewSession(e.client, concurrency.WithTTL(e.seconds))
	if err != nil {
		return nil, err
	}
	e.sessions = append(e.sessions, s)
	return etcdWorker{concurrency.NewMutex(s, e.space+name)}, nil
}

// Close ends sessions and client.
func (e *etcdMutexes) Close() error {
	var errs []error
	for _, s := range e.sessions {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, e.client.Close())...)
}

type etcdWorker struct{ mutex *concurrency.Mutex }

// Lock is Mutex.Lock.
func (w etcdWorker) Lock(ctx context.Context) error { return w.mutex.Lock(ctx) }

// Unlock is Mutex.Unlock.
func (w etcdWorker) Unlock(ctx context.Context) error { return w.mutex.Unlock(ctx) }
