package redlock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

// mute is a connection to a server that hangs: it ends no call by itself, and its farewell lasts until free is closed.
type mute struct {
	redislock.Conn // what is not asked for here
	free           chan struct{}
}

func (m *mute) Start(context.Context, string, redislock.Handler) error { return nil }
func (m *mute) Sharded() bool                                          { return false }

func (m *mute) Call(ctx context.Context, _ *redislock.Call) redislock.Reply {
	<-ctx.Done()
	return redislock.Reply{Err: ctx.Err()}
}

func (m *mute) Close() error {
	<-m.free
	return nil
}

func TestOpen_OfNodesThatHang_ReturnsWithItsContext_AndNotWithTheFarewell(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	var dials []dialer
	for i := range 3 {
		dials = append(dials,
			dialer{name: fmt.Sprint("node ", i+1), dial: func(context.Context) (redislock.Conn, error) {
				return &mute{free: free}, nil
			}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	opened := make(chan error, 1)
	go func() { // ends with ctx
		_, err := open(ctx, dials, &Options{Check: redislock.CheckNone})
		opened <- err
	}()
	select {
	case err := <-opened:
		if err == nil {
			t.Error("nodes that say nothing were opened")
		}
	case <-time.After(15 * time.Second):
		t.Error("it waits for the farewell")
	}
}

// A look that does not wait for a node which is still being connected to may tell a smaller token than the holder has,
// with which nobody can break the lock.
func TestLook_WhileANodeIsConnectedTo_WaitsForIt(t *testing.T) {
	nodes := addrs(startNodes(t, 3))
	free, asked := make(chan struct{}), make(chan struct{})
	var dials []dialer
	for i, addr := range nodes {
		node := driver.URL{Scheme: "redis", Hosts: []string{addr}}
		dial, _, err := redislock.Dialer(&node, driver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		dials = append(dials, dialer{name: addr, dial: func(ctx context.Context) (redislock.Conn, error) {
			if i == 2 {
				<-free
			}
			return dial(ctx)
		}})
	}
	d, err := open(t.Context(), dials, &Options{Check: redislock.CheckNone, NodeTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	go func() { // ends with the two looks
		<-asked
		<-asked
		close(free)
	}()
	looked := 0
	err = d.survey(t.Context(), "look", "x", func(_ context.Context, i int, _ *redislock.Driver) (func(), error) {
		if i != 2 {
			asked <- struct{}{}
		}
		return func() { looked++ }, nil
	})
	if err != nil || looked != 3 {
		t.Errorf("%d nodes of 3 were looked at: %v", looked, err)
	}
}
