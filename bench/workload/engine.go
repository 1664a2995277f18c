package workload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// The engines of Held.
const (
	EngineMem  = "memlock"
	EngineNone = "no engine" // grants everything and remembers nothing, so that what is left is the core's
)

// leasing is an engine with leases.
type leasing interface {
	driver.Driver
	driver.Renewer
}

// counter counts what travels to an engine.
type counter struct {
	leasing
	batches, renewed atomic.Int64
	want             int64         // how many renewals are awaited
	enough           chan struct{} // closed when there are that many
	once             sync.Once
}

func engineFor(j *Job) (*counter, error) {
	c := &counter{want: int64(j.Locks) * int64(j.Renewals), enough: make(chan struct{})}
	switch j.Peer {
	case EngineMem:
		c.leasing = memlock.New(nil)
	case EngineNone:
		c.leasing = &nothing{}
	default:
		return nil, fmt.Errorf("there is no engine %q to hold locks on", j.Peer)
	}
	return c, nil
}

// Renew counts a batch, and in it what was renewed.
func (c *counter) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	c.batches.Add(1)
	c.leasing.Renew(ctx, batch, func(i int, err error) {
		done(i, err)
		if err == nil && c.renewed.Add(1) == c.want {
			c.once.Do(func() { close(c.enough) })
		}
	})
}

// await returns when the renewals are there, and after atMost in any case: locks that were lost are not renewed.
func (c *counter) await(atMost time.Duration) {
	if c.want == 0 {
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-c.enough:
	case <-timer.C:
	}
}

// nothing is an engine that says yes.
type nothing struct{ token atomic.Uint64 }

// Traits are those of memlock.
func (*nothing) Traits() driver.Traits {
	return driver.Traits{Engine: "none", Lifetime: driver.Leases, Local: true, Kinds: []driver.Kind{driver.KindMutex}}
}

// Acquire grants.
func (n *nothing) Acquire(_ context.Context, r *driver.Request) (driver.Grant, error) {
	return driver.Grant{Token: n.token.Add(1), Tokens: 1, Nonce: r.ID, Sent: time.Now(), Lease: r.Lease}, nil
}

// Release agrees.
func (*nothing) Release(context.Context, *driver.Release) error { return nil }

// Renew agrees.
func (*nothing) Renew(_ context.Context, batch []driver.Renewal, done func(i int, err error)) {
	for i := range batch {
		done(i, nil)
	}
}

// Close has nothing to close.
func (*nothing) Close() error { return nil }
