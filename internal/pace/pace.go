// Package pace has a clock for tests that bound how long something takes. It stands still while the machine
// does: who was not run for a second has not been slow, and neither has who waited for a server that was
// not run. It is for tests.
package pace

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// tick is by how much the clock goes on at once.
const tick = 5 * time.Millisecond

// Clock goes on by a tick whenever a goroutine of this process has waited for so long and each of its servers has
// answered. So it is a bit slow at all times, and as slow as the machine when that is busy.
type Clock struct{ ticks, longest atomic.Int64 }

// Now is the time since the clock was started.
func (c *Clock) Now() time.Duration { return time.Duration(c.ticks.Load()) * tick }

// Longest is how long at most it has stood still so far. It waits until the clock goes on.
func (c *Clock) Longest() time.Duration {
	for now := c.Now(); c.Now() == now; {
		<-time.After(tick / 5)
	}
	return time.Duration(c.longest.Load())
}

// Process is the clock of this process alone, which goes on until the process ends.
var Process = sync.OnceValue(func() *Clock {
	c := new(Clock)
	go c.run(context.Background(), nil)
	return c
})

// Of starts a clock of this process and the servers. A server that dies counts no longer; one that hangs stops the
// clock, so it is not for those. It ends with t.
func Of(t testing.TB, nodes ...*servers.RedisNode) *Clock {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var conns []*servers.RedisConn
	for _, n := range nodes {
		conn, err := n.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	c, ended := new(Clock), make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		c.run(ctx, slices.Clone(conns))
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	return c
}

func (c *Clock) run(ctx context.Context, conns []*servers.RedisConn) {
	for last := time.Now(); ctx.Err() == nil; {
		<-time.After(tick)
		conns = slices.DeleteFunc(conns, func(conn *servers.RedisConn) bool {
			_, err := conn.Do(ctx, "PING")
			return err != nil
		})
		now := time.Now()
		c.longest.Store(max(c.longest.Load(), int64(now.Sub(last))))
		last = now
		c.ticks.Add(1)
	}
}
