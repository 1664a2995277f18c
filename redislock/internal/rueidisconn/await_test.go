package rueidisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// bell is a Handler that rings at everything.
type bell struct{ news chan struct{} }

func newBell() bell { return bell{make(chan struct{}, 1)} }

func (b bell) Pushed(conn.Link, string, string) { b.ring() }
func (b bell) Dropped(conn.Link)                { b.ring() }
func (b bell) Resumed(conn.Link)                { b.ring() }

func (b bell) ring() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// onBothCarriers runs f with a Conn whose links are connections of rueidis, and with one whose are of package resp.
func onBothCarriers(t *testing.T, f func(t *testing.T, addr string, c *Conn, b bell)) {
	for name, itself := range map[string]bool{"rueidis": false, "resp": true} {
		t.Run(name, func(t *testing.T) {
			addr, b := servers.Redis(t), newBell()
			option := soloOption(addr)
			c := open(t, option)
			c.respOpts = nil
			if itself {
				c.respOpts = respOptions(&option, nil)
			}
			if err := c.Start(t.Context(), testChannel, b); err != nil {
				t.Fatal(err)
			}
			f(t, addr, c, b)
		})
	}
}

func TestAwait_HearsPushesAndDropsAndEndsInTime(t *testing.T) {
	onBothCarriers(t, func(t *testing.T, addr string, c *Conn, b bell) {
		late := func() time.Time { return time.Now().Add(time.Minute) }
		for range 3 {
			time.AfterFunc(10*time.Millisecond, func() { adminDo(t, addr, "PUBLISH", testChannel, "x") })
			if heard, err := c.Await(t.Context(), 0, b.news, late()); !heard || err != nil {
				t.Errorf("a push: %v, %v", heard, err)
			}
			if heard, err := c.Await(t.Context(), 0, b.news, time.Now().Add(10*time.Millisecond)); heard || err != nil {
				t.Errorf("no push: %v, %v", heard, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if heard, err := c.Await(ctx, 0, b.news, late()); heard || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the context's end: %v, %v", heard, err)
			}
			cancel()
		}
		time.AfterFunc(10*time.Millisecond, func() { adminDo(t, addr, "CLIENT", "KILL", "TYPE", "pubsub") })
		if heard, err := c.Await(t.Context(), 0, b.news, late()); !heard || err != nil {
			t.Errorf("a broken connection: %v, %v", heard, err)
		}
	})
}

func TestAwait_IsToldOfDropsOnOtherLinks(t *testing.T) {
	onBothCarriers(t, func(t *testing.T, _ string, c *Conn, b bell) {
		time.AfterFunc(10*time.Millisecond, func() { c.dropped(0) })
		if heard, err := c.Await(t.Context(), 0, b.news, time.Now().Add(time.Minute)); !heard || err != nil {
			t.Errorf("got %v, %v", heard, err)
		}
	})
}

// pushesHeard is a Handler that takes pushes alone.
type pushesHeard chan struct{}

func (h pushesHeard) Pushed(conn.Link, string, string) { h <- struct{}{} }
func (h pushesHeard) Dropped(conn.Link)                {}
func (h pushesHeard) Resumed(conn.Link)                {}

// A link that is made anew is as the one before.
func TestAttend_HearsWhatIsPushedWhileNobodyWaits_AlsoAfterABreak(t *testing.T) {
	addr, heard := servers.Redis(t), make(pushesHeard, 100)
	option := soloOption(addr)
	c := open(t, option)
	c.respOpts = respOptions(&option, nil)
	if err := c.Start(t.Context(), testChannel, heard); err != nil {
		t.Fatal(err)
	}
	c.Attend(true)
	for range 2 {
		soonest := time.Minute
		for range 20 {
			call := echoCall("x")
			if r := c.Call(t.Context(), &call); r.Err != nil {
				t.Fatal(r.Err)
			}
			begin := time.Now()
			adminDo(t, addr, "PUBLISH", testChannel, "x")
			<-heard
			soonest = min(soonest, time.Since(begin))
		}
		if soonest > 15*time.Millisecond { // of many, on a machine that may be slow: without Attend none is below 25 ms
			t.Errorf("a push is seen after %v at the soonest", soonest)
		}
		l := c.only.link.Load()
		adminDo(t, addr, "CLIENT", "KILL", "TYPE", "pubsub")
		eventually(t, "a new link", func() bool { now := c.only.link.Load(); return now != nil && now != l })
	}
}

func TestAwait_EndsWithClose(t *testing.T) {
	onBothCarriers(t, func(t *testing.T, _ string, c *Conn, b bell) {
		time.AfterFunc(10*time.Millisecond, func() { _ = c.Close() })
		_, err := c.Await(t.Context(), 0, b.news, time.Now().Add(time.Minute))
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A server that is too old for RESP3 gets a connection of rueidis.
func TestConnect_ToAServerWithoutRESP3_IsLeftToRueidis(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"rename-command": `HELLO ""`}})
	option := soloOption(s.Addr())
	c := open(t, option)
	c.respOpts = respOptions(&option, nil)
	if err := c.Start(t.Context(), testChannel, newBell()); err != nil {
		t.Fatal(err)
	}
	if _, link := mustCall(t, c, echoCall("x")); link != 0 || c.only.link.Load().resp != nil {
		t.Errorf("the link is number %d, and of package resp: %v", link, c.only.link.Load().resp)
	}
}
