package redlock

import (
	"context"
	"fmt"
	"testing"
	"time"

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
		dials = append(dials, dialer{fmt.Sprint("node ", i+1), func(context.Context) (redislock.Conn, error) { return &mute{free: free}, nil }})
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
