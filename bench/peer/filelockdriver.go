package peer

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock"
)

// filelockDriver shows which part of interlock-file is the engine's.
func filelockDriver() Spec {
	return Spec{
		Name: "filelock-driver",
		Does: "filelock's driver without the core: no local queue, no owners, no context, one flock for each " +
			"acquisition",
		Open: func(_ context.Context, at Place) (Peer, error) {
			d, err := filelock.New(at.Dir, nil)
			if err != nil {
				return nil, err
			}
			return &engine{driver: d}, nil
		},
	}
}

// engine is a driver that is used directly.
type engine struct {
	driver driver.Driver
	last   atomic.Uint64 // request ids are never reused
}

// Worker returns a worker with its own requests.
func (e *engine) Worker(name string) (Worker, error) {
	return &requests{engine: e, key: driver.Key{Kind: driver.KindMutex, Name: name}}, nil
}

// Close closes the driver.
func (e *engine) Close() error { return e.driver.Close() }

type requests struct {
	engine *engine
	key    driver.Key
	id     string // of the present hold
}

// Lock acquires with a new id.
func (r *requests) Lock(ctx context.Context) error {
	r.id = strconv.FormatUint(r.engine.last.Add(1), 36)
	_, err := r.engine.driver.Acquire(ctx, &driver.Request{
		Key: r.key, ID: r.id, Owner: r.id, Client: "bench", Weight: 1, Tokens: 1,
	})
	return err
}

// Unlock releases that id.
func (r *requests) Unlock(ctx context.Context) error {
	return r.engine.driver.Release(ctx, &driver.Release{Key: r.key, ID: r.id})
}
