package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// setNXPool shows which part of a difference is the client library's: redsync and redislock use this one.
func setNXPool() Spec {
	return Spec{
		Name:  "set-nx-pool",
		Does:  "the same as set-nx through go-redis with default options, which takes a connection from a pool for each call",
		Redis: true, Sends: []string{"set"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			return &pooled{
				client: newGoRedis(at), script: goredis.NewScript(compareAndDelete), lease: at.leaseOr(usualLease), me: rand.Text(),
			}, nil
		},
	}
}

type pooled struct {
	client *goredis.Client
	script *goredis.Script
	lease  time.Duration
	me     string
	named  counter
}

// Worker returns a worker with values of its own.
func (p *pooled) Worker() (Worker, error) { return p.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (p *pooled) WorkerOn(name string) (Worker, error) {
	return &pooledWorker{pooled: p, key: name, values: p.named.values(p.me)}, nil
}

// Close closes the client.
func (p *pooled) Close() error { return p.client.Close() }

type pooledWorker struct {
	*pooled
	key string
	values
}

// Lock asks until the key is set.
func (w *pooledWorker) Lock(ctx context.Context) error {
	w.next()
	for {
		err := w.client.SetArgs(ctx, w.key, w.value, goredis.SetArgs{Mode: "NX", TTL: w.lease}).Err()
		if !errors.Is(err, goredis.Nil) {
			return err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// Unlock deletes the key.
func (w *pooledWorker) Unlock(ctx context.Context) error {
	return deleted(w.script.Run(ctx, w.client, []string{w.key}, w.value).Int64())
}
