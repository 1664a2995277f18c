package redlock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// The overlap is 0 ms: when the next owner's Lock returns, the holder has been told in every way that there is, also if
// it still reaches some of the nodes.
func TestBlackHole_BeforeTheHolder_ItIsOutBeforeTheNextIsIn(t *testing.T) {
	nodes := addrs(startNodes(t, 5))
	_ = openAt(t.Context(), t, nodes).Close() // from now on they are known for nodes that have forgotten nothing
	for name, direction := range map[string]servers.Direction{
		"BothWays": servers.BothWays, "RequestsOnly": servers.ToServer, "RepliesOnly": servers.ToClient,
	} {
		for _, cut := range []int{3, 5} {
			t.Run(fmt.Sprintf("%s/%d of 5 nodes", name, cut), func(t *testing.T) {
				t.Parallel()
				locktest.OnceInTime(t, 4, func(try int) string {
					return blackHole(t, nodes, cut, direction, fmt.Sprint(t.Name(), " ", try))
				})
			})
		}
	}
}

// locksAt returns a client of these nodes, which is closed with the test.
func locksAt(ctx context.Context, t *testing.T, addrs []string, o *interlock.Options) *interlock.Client {
	t.Helper()
	d := openAt(ctx, t, addrs)
	c, err := interlock.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close() // what was not confirmed is the test's own business
		_ = d.Close()
	})
	return c
}

// blackHole returns what the holder, which is cut off from that many nodes, had not been told when the next was in.
func blackHole(t *testing.T, nodes []string, cut int, direction servers.Direction, name string) (late string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var proxies []*servers.Proxy
	var through []string
	for _, addr := range nodes {
		proxies = append(proxies, servers.NewProxy(t, addr))
		through = append(through, proxies[len(proxies)-1].Addr())
	}
	queued := make(chan struct{}, 1024)
	holder := locksAt(ctx, t, through,
		&interlock.Options{Lease: 600 * time.Millisecond, CloseTimeout: time.Millisecond})
	next := locksAt(ctx, t, nodes, &interlock.Options{Observer: &interlock.Observer{
		Waiting: func(context.Context, interlock.Event) { queued <- struct{}{} },
	}})
	held, err := holder.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	lateness := locktest.WatchEnd(t, held)
	go func() { // ends with the wait, which is queued soon
		<-queued
		for _, p := range proxies[:cut] {
			p.BlackHole(direction)
		}
	}()
	l, err := next.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	late = lateness(l)
	for _, p := range proxies {
		p.Pass() // what was held up arrives now
	}
	if err := l.Unlock(ctx); err != nil {
		t.Error(err)
	}
	again := holder.Mutex(name, &interlock.LockOptions{Lease: 30 * time.Second}) // which outlasts a busy machine
	if err := again.Do(ctx, func(context.Context) error { return nil }); err != nil {
		t.Errorf("the holder, when the network is back: %v", err)
	}
	return late
}
