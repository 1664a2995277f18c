package redislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// closedAtOnce has the server close all connections of others, as it does with idle ones, and when it is restarted.
func closedAtOnce(t *testing.T, s *servers.RedisNode) {
	t.Helper()
	if _, err := s.Do(t.Context(), "CLIENT", "KILL", "SKIPME", "yes"); err != nil {
		t.Fatal(err)
	}
}

// Whoever calls first after that finds the connection closed, and nobody has seen it yet.
func TestConnection_ThatTheServerHasClosed_FailsNoRequest(t *testing.T) {
	s := servers.RedisServer(t, nil)
	clientOf := func(d driver.Driver, err error) *interlock.Client {
		if err != nil {
			t.Fatal(err)
		}
		c, err := interlock.New(d, &interlock.Options{LocalHandoffs: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(); _ = d.Close() })
		return c
	}
	byURL := func() (driver.Driver, error) {
		return driver.DefaultMux.Open(t.Context(), "redis://"+s.Addr()+"?check=none", driver.Config{})
	}
	for way, open := range map[string]func() (driver.Driver, error){
		"url": byURL,
		"a client of the program": func() (driver.Driver, error) {
			return open(t, soloOption(s.Addr()), &Options{Check: CheckNone}), nil
		},
	} {
		c, other := clientOf(open()), clientOf(byURL())
		ctx := t.Context()
		sem := c.Semaphore(way, 3, nil)
		for _, name := range []string{way, way + " again"} {
			held, err := other.Lock(ctx, "held "+name)
			if err != nil {
				t.Fatal(err)
			}
			var l, read, permit *interlock.Lease
			for _, step := range []struct {
				what string
				call func() error
			}{
				{"Lock", func() (err error) { l, err = c.Lock(ctx, name); return err }},
				{"Extend", func() error { return l.Extend(ctx, time.Minute) }},
				{"Unlock", func() error { return l.Unlock(ctx) }},
				{"TryLock", func() (err error) { l, err = c.TryLock(ctx, name); return err }},
				{"a look", func() error { _, err := c.Look(ctx, interlock.KindMutex, name); return err }},
				{"Unlock", func() error { return l.Unlock(ctx) }},
				{"a read", func() (err error) {
					read, err = c.RWMutex(name, nil).UpgradeableRLock(ctx)
					return err
				}},
				{"an upgrade", func() error { return read.Upgrade(ctx) }},
				{"Unlock", func() error { return read.Unlock(ctx) }},
				{"a permit", func() (err error) { permit, err = sem.Acquire(ctx, 1); return err }},
				{"Resize", func() error { return sem.Resize(ctx, 3) }},
				{"Unlock", func() error { return permit.Unlock(ctx) }},
				{"several", func() error {
					all, err := c.Multi([]string{name, "b"}, nil).TryLock(ctx)
					if err == nil {
						err = all.Unlock(ctx)
					}
					return err
				}},
				{"a latch", func() error { _, err := c.Latch(name).Set(ctx, 1); return err }},
				{"a count", func() error { _, err := c.Latch(name).CountDown(ctx); return err }},
			} {
				closedAtOnce(t, s)
				if err := step.call(); err != nil {
					t.Errorf("%s, %s: %v", way, step.what, err)
				}
			}
			// A refusal is as definite as one over a connection that lasts.
			for _, refused := range []func() error{
				func() error { _, err := c.TryLock(ctx, "held "+name); return err },
				func() error { _, err := c.Multi([]string{"held " + name, "b"}, nil).TryLock(ctx); return err },
			} {
				closedAtOnce(t, s)
				if err := refused(); !errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrUnavailable) {
					t.Errorf("%s, of a lock that is held: %v", way, err)
				}
			}
			if err := held.Unlock(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	wantNoLock(t, s, "in the end")
}

// broke is the answer of a connection that has ended.
func broke() Reply { return Reply{Err: fmt.Errorf("the connection broke: %w", io.EOF)} }

// askedThrough has a driver ask while each call but the last is answered as given. It returns what came of it, and how
// often it asked.
func askedThrough(
	ctx context.Context, t *testing.T, r *driver.Request, answers ...func(d *Driver) Reply,
) (n int, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{begin: time.Now(), listen: -1}
		d, fault := start(t.Context(), p, &Options{Check: CheckNone})
		if fault != nil {
			t.Fatal(fault)
		}
		p.answer = func(c *Call) Reply {
			if c.Script != acquireScript {
				return Reply{Text: "ok"}
			}
			n++
			if n <= len(answers) {
				return answers[n-1](d)
			}
			return p.grants(c, 1, 0)
		}
		_, err = d.Acquire(ctx, r)
		_ = d.Close()
		synctest.Wait()
	})
	return n, err
}

// A request is asked once more, by the same ID, and no more often; not at all if it was withdrawn or its caller has
// left meanwhile, and not when the server has answered or hangs.
func TestAcquire_WhoseConnectionBroke_IsAskedOnceMore(t *testing.T) {
	for name, row := range map[string]struct {
		answers func(leave context.CancelFunc) []func(d *Driver) Reply
		asked   int
		granted bool
	}{
		"once": {func(context.CancelFunc) []func(*Driver) Reply {
			return []func(*Driver) Reply{func(*Driver) Reply { return broke() }}
		}, 2, true},
		"twice": {func(context.CancelFunc) []func(*Driver) Reply {
			return []func(*Driver) Reply{func(*Driver) Reply { return broke() }, func(*Driver) Reply { return broke() }}
		}, 2, false},
		"withdrawn meanwhile": {func(context.CancelFunc) []func(*Driver) Reply {
			return []func(*Driver) Reply{func(d *Driver) Reply {
				r := puppetRequest()
				_ = d.Release(context.Background(), &driver.Release{Key: r.Key, ID: r.ID, Undo: true})
				return broke()
			}}
		}, 1, false},
		"its caller has left": {func(leave context.CancelFunc) []func(*Driver) Reply {
			return []func(*Driver) Reply{func(*Driver) Reply { leave(); return broke() }}
		}, 1, false},
		"the driver was closed": {func(context.CancelFunc) []func(*Driver) Reply {
			return []func(*Driver) Reply{func(d *Driver) Reply { _ = d.Close(); return broke() }}
		}, 1, false},
		"an answer that is not known": {func(context.CancelFunc) []func(*Driver) Reply {
			return []func(*Driver) Reply{func(*Driver) Reply { return Reply{Err: errors.New("ERR something")} }}
		}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			n, err := askedThrough(ctx, t, puppetRequest(), row.answers(leave)...)
			if n != row.asked || (err == nil) != row.granted {
				t.Errorf("asked %d times, want %d: %v", n, row.asked, err)
			}
		})
	}
}

// That the copy was not sent says nothing of the request itself: who looks for that must not find it.
func TestAcquire_WhoseCopyIsNotSent_HasAnUnknownOutcome(t *testing.T) {
	unsent := func(*Driver) Reply { return Reply{Err: &RefusedError{Err: errors.New("connection refused")}} }
	n, err := askedThrough(t.Context(), t, puppetRequest(), func(*Driver) Reply { return broke() }, unsent)
	if n != 2 || isRefusal(err) || driver.IsNotSent(err) || driver.IsDefinite(err) {
		t.Errorf("asked %d times: %v", n, err)
	}
}

// A refusal of the copy is definite only if the server has confirmed that the first one can take nothing any more.
func TestAcquire_WhoseCopyIsRefused_IsUndoneBeforeTheRefusalIsDefinite(t *testing.T) {
	for name, confirms := range map[string]bool{"confirmed": true, "unconfirmed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppet{begin: time.Now(), listen: -1}
				d, err := start(t.Context(), p, &Options{Check: CheckNone})
				if err != nil {
					t.Fatal(err)
				}
				undone := false
				p.answer = func(c *Call) Reply {
					switch {
					case c.Script == releaseScript && c.Args[1] == "u" && confirms:
						undone = true
						return Reply{Text: "ok"}
					case c.Script == releaseScript:
						return broke()
					case p.asked() == 1:
						return broke()
					}
					return Reply{Text: fmt.Sprintf("H %d 0 0 0 7 0 ", p.now())}
				}
				r := puppetRequest()
				r.Try = true
				_, err = d.Acquire(t.Context(), r)
				if !errors.Is(err, driver.ErrHeld) || driver.IsDefinite(err) != confirms || undone != confirms {
					t.Errorf("undone %v: %v", undone, err)
				}
				_ = d.Close()
			})
		})
	}
}
