package experiment

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit/d08redisson"
)

// closed is a Redis in which another has the lock for so many milliseconds.
type closed struct {
	left  int64
	tries int
}

func (c *closed) Do(context.Context, ...string) (any, error) {
	if c.tries++; c.tries > 100 {
		return nil, errors.New("it tries without a pause")
	}
	return c.left, nil
}

// waiter is a lock whose client waits for messages with next.
func waiter(c *closed, next func(context.Context) error) *d08redisson.Lock {
	return &d08redisson.Lock{
		Conn: c, Key: key, Client: "client", Waiting: func() {}, Woken: func() {},
		Subscribe: func(context.Context, string) (func(context.Context) error, error) { return next, nil },
	}
}

func TestD8_ABrokenSubscription_EndsTheWait(t *testing.T) {
	broken := errors.New("broken")
	server := &closed{left: 10_000}
	err := waiter(server, func(context.Context) error { return broken }).Lock(t.Context())
	if !errors.Is(err, broken) || server.tries != 2 {
		t.Errorf("after %d tries: %v", server.tries, err)
	}
}

func TestD8_WithoutAMessage_TriesAtTheEndOfTheLease(t *testing.T) {
	for left, want := range map[int64]int{
		10_000: 7, // one before the subscription, one after it, and one at each end of a lease
		-1:     2, // there is no lease
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &closed{left: left}
			ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
			defer cancel()
			err := waiter(server, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}).Lock(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || server.tries != want {
				t.Errorf("%d ms: after %d tries: %v", left, server.tries, err)
			}
		})
	}
}
