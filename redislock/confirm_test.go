package redislock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// confirmedLock asks for locks of one server.
type confirmedLock struct {
	t *testing.T
	d *Driver
}

func (c *confirmedLock) request(id string) *driver.Request {
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "confirmed"}, ID: id, Owner: "o", Client: "c",
		Weight: 1, Tokens: 4, Lease: time.Minute,
	}
}

func (c *confirmedLock) take(id string) driver.Grant {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	g, err := c.d.Acquire(ctx, c.request(id))
	if err != nil {
		c.t.Fatal(err)
	}
	return g
}

func (c *confirmedLock) give(id string) {
	c.t.Helper()
	if err := c.d.Release(c.t.Context(), &driver.Release{Key: c.request(id).Key, ID: id}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *confirmedLock) confirm(id string, token uint64, tokens int) error {
	c.t.Helper()
	return c.d.Confirm(c.t.Context(),
		&Confirmation{Key: c.request(id).Key, ID: id, Lease: time.Hour, Token: token, Tokens: tokens})
}

func TestConfirm(t *testing.T) {
	addr := servers.Redis(t)
	c := &confirmedLock{t, open(t, rueidis.ClientOption{InitAddress: []string{addr}}, nil)}
	t.Cleanup(func() { _ = c.d.Close() })

	t.Run("SetsTheTokensAndTheLease_AndLaterTokensAreLarger", func(t *testing.T) {
		token := c.take("a").Token + 1_000_000_000
		if err := c.confirm("a", token, 7); err != nil {
			t.Fatal(err)
		}
		info, tokens, inUse, err := c.d.LookTokens(t.Context(), c.request("a").Key)
		if err != nil || !inUse || len(info.Holders) != 1 || info.Holders[0].Token != token || tokens[0] != 7 {
			t.Fatalf("after the confirmation it is %+v with %v tokens, %v", info, tokens, err)
		}
		if h := info.Holders[0]; h.Until.Sub(h.Since) < 50*time.Minute {
			t.Errorf("the lease is %v, want an hour", h.Until.Sub(h.Since))
		}
		c.give("a")
		if next := c.take("b").Token; next != token+7 {
			t.Errorf("the next token is %d, want %d", next, token+7)
		}
		c.give("b")
	})

	t.Run("NeverLowersLaterTokens", func(t *testing.T) {
		first := c.take("c")
		if err := c.confirm("c", 1, 1); err != nil {
			t.Fatal(err)
		}
		c.give("c")
		if next := c.take("d").Token; next <= first.Token {
			t.Errorf("token %d after %d", next, first.Token)
		}
		c.give("d")
	})

	t.Run("OfAHoldThatIsOver_IsRefusedAndChangesNothing", func(t *testing.T) {
		last := c.take("e").Token
		c.give("e")
		if err := c.confirm("e", last+1_000_000_000, 1); !errors.Is(err, driver.ErrLost) {
			t.Fatalf("confirmation of a hold that is over: %v", err)
		}
		if next := c.take("f").Token; next > last+900_000_000 {
			t.Errorf("token %d after %d: the refused confirmation has raised it", next, last)
		}
		c.give("f")
	})

	t.Run("LetsInWhoWaitsForAHoldThatIsOver", func(t *testing.T) {
		r := c.request("g")
		r.Lease = 30 * time.Millisecond
		if _, err := c.d.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := c.d.Acquire(ctx, c.request("h")); err != nil {
			t.Fatal(err)
		}
		if err := c.confirm("g", 1, 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("confirmation of a hold whose lease is over: %v", err)
		}
		c.give("h")
	})

	t.Run("DoesNotReviveAHoldThatIsLost_AndKeptFromOthers", func(t *testing.T) {
		r := c.request("i")
		r.Lease, r.LockDelay = 30*time.Millisecond, time.Minute
		if _, err := c.d.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		try := c.request("j")
		try.Try = true
		until := time.Now().Add(20 * time.Second)
		for {
			var held *driver.HeldError // the end of the lease makes room for the delay, which is longer
			if _, err := c.d.Acquire(t.Context(), try); errors.As(err, &held) &&
				held.Until.Sub(held.Since) > 30*time.Second {
				break
			} else if time.Now().After(until) {
				t.Fatalf("a hold that is over: %v", err)
			}
		}
		if err := c.confirm("i", 1, 1); !errors.Is(err, driver.ErrLost) {
			t.Errorf("confirmation of a hold that is lost: %v", err)
		}
	})
}
