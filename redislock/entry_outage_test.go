package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// outages are the ways in which a server is away, and back.
var outages = map[string]struct{ begin, end func(n *servers.RedisNode) }{
	"a server that is stopped": {(*servers.RedisNode).Stop, (*servers.RedisNode).Cont},
	"a refused connection":     {(*servers.RedisNode).Kill, (*servers.RedisNode).Restart},
}

// tried is how many locks are tried in an outage.
const tried = 200

// lockAll tries so many locks at once, and wants each to say that nobody answers.
func lockAll(t *testing.T, c *interlock.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, err := c.Lock(ctx, fmt.Sprint("lock ", i))
			// On a slow machine its time is over before it has begun.
			if !errors.Is(err, interlock.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Lock in an outage: %v", err)
			}
		})
	}
	all.Wait()
}

func TestOutage_LeavesNothingOfTheLocksThatWereTried(t *testing.T) {
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			s := servers.RedisServer(t, nil)
			d := open(t, soloOption(s.Addr()), nil)
			defer func() { _ = d.Close() }()
			c, err := interlock.New(d, &interlock.Options{Lease: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			before := runtime.NumGoroutine()
			o.begin(s)
			lockAll(t, c, tried)
			eventually(t, "no entry to be left while the server is away", func() bool { return d.known() == 0 })
			if name == "a refused connection" { // its end is noticed by one of those before
				lockAll(t, c, tried)
				if n := runtime.NumGoroutine() - before; n > tried+tried/10 {
					t.Errorf("%d goroutines undo what was not sent", n-tried)
				}
			}
			o.end(s)
			eventually(t, "the goroutines to end when it is back", func() bool {
				return runtime.NumGoroutine() <= before
			})
			l, err := c.Lock(t.Context(), "lock 0")
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Unlock(t.Context()); err != nil || d.known() != 0 {
				t.Errorf("Unlock: %v, %d entries", err, d.known())
			}
		})
	}
}

func TestOutage_CloseLeavesNothingInADriverThatGoesOn(t *testing.T) {
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			s := servers.RedisServer(t, nil)
			d := open(t, soloOption(s.Addr()), nil)
			defer func() { _ = d.Close() }()
			before := runtime.NumGoroutine()
			c, err := interlock.New(d, &interlock.Options{CloseTimeout: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if _, err := c.Lock(t.Context(), fmt.Sprint("held ", i)); err != nil {
					t.Fatal(err)
				}
			}
			o.begin(s)
			lockAll(t, c, tried)
			if err := c.Close(); !errors.Is(err, interlock.ErrUnavailable) {
				t.Errorf("Close in an outage: %v", err)
			}
			if n := d.known(); n != 0 {
				t.Errorf("%d entries after Close", n)
			}
			// The driver itself may have some that connect again.
			eventually(t, "the goroutines to end while the server is away", func() bool {
				return runtime.NumGoroutine() <= before+10
			})
			o.end(s)
			eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

func TestAcquire_ThatWasNotSent_LeavesNothingToUndo(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	defer func() { _ = d.Close() }()
	d.conn = refuses{d.conn}
	for i := range 2 * remembered {
		_, err := d.Acquire(t.Context(), lockRequest(fmt.Sprint("id", i), "lock"))
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("Acquire: %v", err)
		}
	}
	for i := range 20 {
		r := lockRequest(fmt.Sprint("undone", i), "lock")
		if _, err := d.Acquire(t.Context(), r); !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("Acquire: %v", err)
		}
		if n := d.known(); n != 0 {
			t.Errorf("%d entries", n)
		}
		undo := &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: time.Minute}
		if err := d.Release(t.Context(), undo); err != nil {
			t.Errorf("undo of what was not sent: %v", err)
		}
		if _, err := d.Acquire(t.Context(), r); !errors.Is(err, driver.ErrLost) {
			t.Errorf("Acquire of what was undone: %v", err)
		}
	}
	if n := len(d.unsent); n > remembered {
		t.Errorf("%d requests that were not sent are remembered", n)
	}
}

// What was queued before is on the server, although the request that is asked again is not sent.
func TestAcquire_ThatWasNotSentAgain_IsUndone(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d, holder := open(t, soloOption(s.Addr()), nil), open(t, soloOption(s.Addr()), nil)
	defer func() { _, _ = d.Close(), holder.Close() }()
	if _, err := holder.Acquire(t.Context(), lockRequest("holder", "lock")); err != nil {
		t.Fatal(err)
	}
	r := lockRequest("waiter", "lock")
	ctx, cancel := context.WithCancel(t.Context())
	ended, err := waiting(ctx, d, r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-ended
	d.conn = refuses{d.conn}
	if _, err := d.Acquire(t.Context(), r); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Acquire: %v", err)
	}
	d.conn = d.conn.(refuses).Conn
	if err := d.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID, Undo: true}); err != nil {
		t.Fatal(err)
	}
	for info, err := range holder.Locks(t.Context(), "") {
		if err != nil || len(info.Waiters) != 0 {
			t.Errorf("%d wait, and were undone; %v", len(info.Waiters), err)
		}
	}
}

// A request of which a copy may be under way still says so when it is asked again; and the copy is
// refused when it is released.
func TestRelease_ThatBroughtNoAnswer_IsAskedAgainAsIfACopyWereUnderWay(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	defer func() { _ = d.Close() }()
	r := lockRequest("id", "lock")
	if _, err := d.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	give := &driver.Release{Key: r.Key, ID: r.ID, Horizon: time.Minute}
	if err := d.Release(ctx, give); !errors.Is(err, driver.ErrUnavailable) || d.known() != 0 {
		t.Errorf("Release of a server that hangs: %v, %d entries", err, d.known())
	}
	s.Cont()
	if err := d.Release(t.Context(), give); err != nil && !errors.Is(err, driver.ErrLost) {
		t.Errorf("Release: %v", err)
	}
	if _, err := d.Acquire(t.Context(), r); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Acquire of what was released: %v", err)
	}
}

// refuses is a Conn that sends nothing.
type refuses struct{ Conn }

func (refuses) Call(context.Context, *Call) Reply {
	return Reply{Err: &RefusedError{Err: errors.New("refused")}}
}

// known is how many requests the driver knows.
func (d *Driver) known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.entries)
}
