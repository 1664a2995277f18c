package redislock

import (
	"context"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/redis/rueidis"
)

// plainConn is the simplest Conn: pushes come over another connection than replies, so every one has to be confirmed.
type plainConn struct {
	client rueidis.Client
	end    context.CancelFunc
	ended  sync.WaitGroup

	// read-locked by calls under way, so that Close does not race with a connection that is being made
	calls  sync.RWMutex
	closed bool
}

func newPlainConn(client rueidis.Client) *plainConn { return &plainConn{client: client} }

func (c *plainConn) Start(begin context.Context, channel string, h Handler) error {
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	subscribed := make(chan struct{}, 16)
	heard := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		h.Resumed(0)
		select {
		case subscribed <- struct{}{}:
		default:
		}
	})
	failed := make(chan error, 1)
	c.ended.Go(func() {
		failed <- c.client.Receive(heard, c.client.B().Subscribe().Channel(channel).Build(),
			func(m rueidis.PubSubMessage) {
				h.Pushed(0, m.Channel, m.Message)
			})
	})
	select {
	case <-subscribed:
		return nil
	case err := <-failed:
		return err
	case <-begin.Done():
		return begin.Err()
	}
}

func (c *plainConn) Sharded() bool { return false }

func (c *plainConn) Call(ctx context.Context, call *Call) Reply {
	c.calls.RLock()
	defer c.calls.RUnlock()
	if c.closed {
		return Reply{Err: &RefusedError{Err: driver.ErrClosed}}
	}
	b := c.client.B()
	r := c.client.Do(ctx,
		b.Evalsha().Sha1(call.Script.SHA()).Numkeys(int64(len(call.Keys))).Key(call.Keys...).Arg(call.Args...).Build())
	if err := r.Error(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		r = c.client.Do(ctx,
			b.Eval().Script(call.Script.Source()).Numkeys(int64(len(call.Keys))).Key(call.Keys...).Arg(
				call.Args...).Build())
	}
	text, err := r.ToString()
	return Reply{Text: text, Err: err}
}

func (c *plainConn) Batch(ctx context.Context, calls []Call, done func(i int, r Reply)) {
	for i := range calls {
		done(i, c.Call(ctx, &calls[i]))
	}
}

func (c *plainConn) Listen(context.Context, uint16, string) error { return nil }
func (c *plainConn) Unlisten(uint16, string)                      {}

func (c *plainConn) Nodes(context.Context) ([]Node, error) {
	return []Node{plainNode{c.client}}, nil
}

func (c *plainConn) Close() error {
	c.end()
	c.ended.Wait()
	c.calls.Lock()
	defer c.calls.Unlock()
	c.closed = true
	c.client.Close()
	return nil
}

type plainNode struct{ client rueidis.Client }

func (plainNode) Addr() string { return "plain" }

func (n plainNode) Do(ctx context.Context, args ...string) (any, error) {
	return n.client.Do(ctx, n.client.B().Arbitrary(args...).Build()).ToAny()
}
