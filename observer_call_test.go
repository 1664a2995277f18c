package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// pairs counts what an Observer is told of beginnings and ends, as a program's gauges would.
type pairs struct {
	mu    sync.Mutex
	begun map[string]int // how often, ever
	open  map[string]int // and of those, how many have no end yet
	wrong []string
	slow  time.Duration // for how long Waiting takes
}

// begin and end count one event of that name.
func (p *pairs) begin(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		p.begun, p.open = make(map[string]int), make(map[string]int)
	}
	p.begun[what]++
	p.open[what]++
}

func (p *pairs) end(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[what]--; p.open[what] < 0 {
		p.wrong = append(p.wrong, "an end before its beginning: "+what)
	}
}

func (p *pairs) observer() *Observer {
	ends := func(_ context.Context, e Event) {
		if e.Queued {
			p.end("waits")
		}
	}
	return &Observer{
		Waiting: func(context.Context, Event) {
			time.Sleep(p.slow) // virtual
			p.begin("waits")
		},
		Acquired: ends, Failed: ends, Upgraded: ends,
		Retained: func(Event) {
			time.Sleep(p.slow) // virtual
			p.begin("retained")
		},
		RetentionEnded: func(Event) { p.end("retained") },
		Settling:       func(Event) { p.begin("settling") },
		Settled:        func(Event) { p.end("settling") },
	}
}

// balance fails unless all that began has ended, and began as often as begun says; -1 is at least once.
func (p *pairs) balance(t *testing.T, begun map[string]int) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wrong := range p.wrong {
		t.Error(wrong)
	}
	for what, n := range p.open {
		if n != 0 {
			t.Errorf("%d of %d %s have no end", n, p.begun[what], what)
		}
	}
	for what, n := range begun {
		if got := p.begun[what]; got != n && (n >= 0 || got == 0) {
			t.Errorf("%s began %d times, want %d", what, got, n)
		}
	}
}

func TestObserver_EachWaitIsToldOnce_AndHasOneEnd(t *testing.T) {
	for name, verb := range map[string]struct {
		waits int
		run   func(t *testing.T, c *Client, h *hooks)
	}{
		"a lock that is free": {0, func(t *testing.T, c *Client, _ *hooks) {
			mustUnlock(t, mustLock(t, t.Context(), c, "a"))
		}},
		"a try": {0, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			_, _ = c.TryLock(t.Context(), "a")
			mustUnlock(t, l)
		}},
		"two in the line of this process": {2, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			var all sync.WaitGroup
			for range 2 { // which of them is first is for chance to say
				all.Go(func() {
					if l, err := c.Lock(t.Context(), "a"); err != nil || l.Unlock(t.Context()) != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			mustUnlock(t, l)
			all.Wait()
		}},
		"a wait that its context ends": {1, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			timesOut(t, t.Context(), func(ctx context.Context) error { return errOf(c.Lock(ctx, "a")) })
			mustUnlock(t, l)
		}},
		"a wait that Close ends": {1, func(t *testing.T, c *Client, _ *hooks) {
			mustLock(t, t.Context(), c, "a")
			out := lockLater(t.Context(), c, "a")
			synctest.Wait()
			if err := c.Close(); err != nil || !errors.Is((<-out).err, ErrClosed) {
				t.Error(err)
			}
		}},
		"a wait for another process, over a connection that breaks": {1, func(t *testing.T, c *Client, h *hooks) {
			l := mustLock(t, t.Context(), peer(t, h, nil), "a")
			breaks := make(chan struct{})
			on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
				on(h, &h.acquire, h.Driver.Acquire)
				bounded, cancel := context.WithCancel(ctx)
				go func() { <-breaks; cancel() }()
				if _, err := h.Driver.Acquire(bounded, r); err == nil {
					t.Error("it was granted")
				}
				return driver.Grant{}, errors.New("connection reset")
			})
			out := lockLater(t.Context(), c, "a")
			synctest.Wait()
			close(breaks)
			time.Sleep(second)
			mustUnlock(t, l)
			mustUnlock(t, woken(t, "who waits", out))
		}},
		"a wait that is asked for anew, because its owner has got in": {1, func(t *testing.T, c *Client, h *hooks) {
			m := c.RWMutex("a", nil)
			reads := must(t)(peer(t, h, nil).RWMutex("a", nil).RLock(t.Context()))
			ctx := ownContext(t)
			write := later(func() (*Lease, error) { return m.Lock(ctx) })
			synctest.Wait()
			mustUnlock(t, reads)
			mustUnlock(t, woken(t, "who writes", write))
		}},
		"an upgrade": {1, func(t *testing.T, c *Client, h *hooks) {
			l := must(t)(c.RWMutex("a", nil).UpgradeableRLock(t.Context()))
			other := must(t)(peer(t, h, nil).RWMutex("a", nil).RLock(t.Context()))
			timesOut(t, t.Context(), l.Upgrade)
			mustUnlock(t, other)
			mustUnlock(t, l)
		}},
		"a Multi": {1, func(t *testing.T, c *Client, _ *hooks) {
			b := mustLock(t, t.Context(), c, "b")
			timesOut(t, t.Context(), func(ctx context.Context) error {
				_, err := c.Multi([]string{"a", "b"}, nil).Lock(ctx)
				return err
			})
			mustUnlock(t, b)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var p pairs
			bubble(t, &Options{Observer: p.observer()}, func(t *testing.T, c *Client, h *hooks) {
				verb.run(t, c, h)
				synctest.Wait()
				_ = c.Close()
				p.balance(t, map[string]int{"waits": verb.waits})
			})
		})
	}
}

// ownContext returns a context that carries an anonymous owner.
func ownContext(t *testing.T) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), core.OwnerKey{}, &core.Owner{ID: "an owner"})
}

// The engine's news that a call has to wait may come in another goroutine than the call's, and after the end of the
// call.
func TestObserver_IsNeverToldOfAWaitThatIsOver(t *testing.T) {
	for _, slow := range []time.Duration{0, second} {
		t.Run(slow.String(), func(t *testing.T) {
			p := pairs{slow: slow}
			bubble(t, &Options{Observer: p.observer()}, func(t *testing.T, c *Client, h *hooks) {
				on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
					waiting, held := r.Waiting, &HeldError{Kind: r.Kind, Name: r.Name}
					go waiting(held)
					time.AfterFunc(2*second, func() { waiting(held) })
					return h.Driver.Acquire(ctx, r)
				})
				var all sync.WaitGroup
				for i := range 100 {
					all.Go(func() {
						ctx := t.Context()
						if i%2 > 0 { // its request to the engine is for it alone
							ctx = WithOwner(ctx, fmt.Sprint(i))
						}
						if l, err := c.Lock(ctx, fmt.Sprint(i)); err != nil || l.Unlock(ctx) != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				time.Sleep(3 * second)
				p.balance(t, nil)
			})
		})
	}
}

func TestObserver_IsToldOfTheEndOfARetention_AfterItsBeginning(t *testing.T) {
	p := pairs{slow: second}
	bubble(t, &Options{Observer: p.observer(), Retain: time.Minute}, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		done := make(chan error)
		go func() { done <- l.Unlock(t.Context()) }()
		synctest.Wait() // it is retained, and who has unlocked it still tells that
		l = mustLock(t, t.Context(), c, "a")
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.balance(t, map[string]int{"retained": 1})
		mustUnlock(t, l)
	})
}

func TestObserver_Balances_WhateverHappens(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var p pairs
	o := &Options{Observer: p.observer(), Retain: second, Lease: 3 * second, LocalHandoffs: 2}
	bubble(t, o, func(t *testing.T, c *Client, h *hooks) {
		clients := []*Client{c, mustNew(t, h.Peer(), o)}
		on(h, &h.acquire, sometimes(h, seed, h.Driver.Acquire))
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() { worker(t, clients[i%2], rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
		all.Wait()
		for _, c := range clients {
			_ = c.Close()
		}
		p.balance(t, map[string]int{"waits": -1, "retained": -1, "settling": -1})
	})
}

// sometimes makes the engine lose an answer at random.
func sometimes(h *hooks, seed uint64, acquire func(context.Context, *driver.Request) (driver.Grant, error),
) func(context.Context, *driver.Request) (driver.Grant, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		answer, err := acquire(ctx, r)
		h.mu.Lock()
		defer h.mu.Unlock()
		if random.IntN(5) == 0 {
			return driver.Grant{}, errors.New("connection reset")
		}
		return answer, err
	}
}

// worker takes locks of a few names, with random limits on the wait, and holds each for a random time.
func worker(t *testing.T, c *Client, random *rand.Rand) {
	t.Helper()
	for range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Millisecond)
		m := c.Mutex(fmt.Sprint(random.IntN(4)), nil)
		acquire := m.Lock
		if random.IntN(4) == 0 {
			acquire = m.TryLock
		}
		if l, err := acquire(ctx); err == nil {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // virtual
			_ = l.Unlock(t.Context())
		}
		cancel()
	}
}
