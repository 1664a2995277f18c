package peer

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// setNX is the floor of a lock that nobody disturbs: less than these two round trips is no lock with a lease.
func setNX() Spec {
	return Spec{
		Name: "set-nx",
		Does: "by hand, through rueidis with default options: SET NX PX with a value of its own, and a script that deletes the " +
			"key if it still has that value; who finds it taken asks again after a millisecond; nothing is renewed",
		Redis: true, Sends: []string{"set"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := newRueidis(at)
			if err != nil {
				return nil, err
			}
			return &bare{
				client: c, script: rueidis.NewLuaScript(compareAndDelete), lease: at.leaseOr(usualLease), me: rand.Text(),
			}, nil
		},
	}
}

type bare struct {
	client rueidis.Client
	script *rueidis.Lua
	lease  time.Duration
	me     string
	named  counter
}

// Worker returns a worker with values of its own.
func (b *bare) Worker() (Worker, error) { return b.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (b *bare) WorkerOn(name string) (Worker, error) {
	return &bareWorker{bare: b, key: name, values: b.named.values(b.me)}, nil
}

// Close closes the client.
func (b *bare) Close() error {
	b.client.Close()
	return nil
}

type bareWorker struct {
	*bare
	key string
	values
}

// Lock asks until the key is set.
func (w *bareWorker) Lock(ctx context.Context) error {
	w.next()
	for {
		set := w.client.B().Set().Key(w.key).Value(w.value).Nx().Px(w.lease).Build()
		if err := w.client.Do(ctx, set).Error(); !rueidis.IsRedisNil(err) {
			return err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// Unlock deletes the key.
func (w *bareWorker) Unlock(ctx context.Context) error {
	return deleted(w.script.Exec(ctx, w.client, []string{w.key}, []string{w.value}).AsInt64())
}

// deleted judges what the script says.
func deleted(n int64, err error) error {
	if err == nil && n != 1 {
		return ErrLost
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// counter numbers the workers of a peer. It is not for several goroutines at once.
type counter int

// values returns a series that nobody else has: that of the next worker of the client named me.
func (c *counter) values(me string) values {
	*c++
	return values{prefix: me + "." + strconv.Itoa(int(*c)) + "."}
}

// values are a worker's, one for each acquisition.
type values struct {
	prefix string
	n      int
	value  string // the present one
}

func (v *values) next() {
	v.n++
	v.value = v.prefix + strconv.Itoa(v.n)
}
