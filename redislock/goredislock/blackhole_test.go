package goredislock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// The overlap is 0 ms: when the next owner's Lock returns, the holder has been told in every way that there is.
func TestBlackHole_BeforeTheHolder_ItIsOutBeforeTheNextIsIn(t *testing.T) {
	addr := servers.Redis(t)
	for name, direction := range map[string]servers.Direction{
		"BothWays": servers.BothWays, "RequestsOnly": servers.ToServer, "RepliesOnly": servers.ToClient,
	} {
		t.Run(name, func(t *testing.T) {
			locktest.OnceInTime(t, 4, func(try int) string {
				return blackHole(t, addr, direction, fmt.Sprint(t.Name(), " ", try))
			})
		})
	}
}

// locksAt returns a client of the server at addr, which is closed with the test.
func locksAt(t *testing.T, addr string, o *interlock.Options) *interlock.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	d, err := NewPooled(client, &redislock.Options{Check: redislock.CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	c, err := interlock.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close() // what was not confirmed is the test's own business
		_ = d.Close()
		awaitCommands()
		_ = client.Close()
	})
	return c
}

// blackHole returns what the holder had not been told when the next was in.
func blackHole(t *testing.T, addr string, direction servers.Direction, name string) (late string) {
	proxy := servers.NewProxy(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	queued := make(chan struct{}, 1024)
	holder := locksAt(t, proxy.Addr(),
		&interlock.Options{Lease: 600 * time.Millisecond, CloseTimeout: time.Millisecond})
	next := locksAt(t, addr, &interlock.Options{Observer: &interlock.Observer{
		Waiting: func(context.Context, interlock.Event) { queued <- struct{}{} },
	}})
	held, err := holder.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	lateness := locktest.WatchEnd(t, held)
	go func() { // ends with the wait, which is queued soon
		<-queued
		proxy.BlackHole(direction)
	}()
	l, err := next.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	late = lateness(l)
	proxy.Pass() // what was held up arrives now
	if err := l.Unlock(ctx); err != nil {
		t.Error(err)
	}
	again := holder.Mutex(name, &interlock.LockOptions{Lease: 30 * time.Second}) // which outlasts a busy machine
	if err := again.Do(ctx, func(context.Context) error { return nil }); err != nil {
		t.Errorf("the holder, when the network is back: %v", err)
	}
	return late
}
