package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// Producers and consumers with a condition over a bad network, in virtual time: no signal may be lost.

// store is what producers and consumers share under the mutex "a", as in a textbook on conditions.
type store struct {
	t               *testing.T
	inside          gauge
	items, consumed int
	total           int
	changed         time.Time
	asleep          atomic.Int64 // how many wait for the condition

	mu     sync.Mutex // guards wakers
	wakers map[*cook]context.CancelFunc
}

// TestCond_InRandomHistories_LosesNoSignal has producers that put items in and signal, and consumers that wait for
// them. Owners are anonymous and named, with a MinHold and without. The network loses requests and answers. Some waits
// are given up, and one client is closed in the middle. No consumer may sleep while there is an item, and two are never
// inside.
func TestCond_InRandomHistories_LosesNoSignal(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := memlock.New(nil)
				defer d.Close()
				random := rand.New(rand.NewPCG(seed, 0))
				s := &store{t: t, total: 60, changed: time.Now(), wakers: make(map[*cook]context.CancelFunc)}
				var clients []*Client
				for range 3 {
					wrapped, _ := faulty.Wrap(d.Peer(), random.Uint64(), disturbances(random)...)
					defer wrapped.Close()
					c := mustNew(t, wrapped, nil)
					defer c.Close()
					clients = append(clients, c)
				}
				var all sync.WaitGroup
				for i := range 9 {
					w := &cook{store: s, c: clients[i%3], random: rand.New(rand.NewPCG(seed, uint64(i+1)))}
					if i < 3 {
						all.Go(func() { w.produce(s.total / 3) })
					} else {
						all.Go(w.consume)
					}
				}
				time.Sleep(time.Duration(random.IntN(60)) * second) // virtual
				if random.IntN(2) == 0 {
					extra := mustNew(t, d, nil) // whose waits end in the middle
					for i := range 2 {
						w := &cook{store: s, c: extra, random: rand.New(rand.NewPCG(seed, uint64(i+100)))}
						all.Go(w.consume)
					}
					time.Sleep(time.Duration(random.IntN(60)) * second) // virtual
					if err := extra.Close(); err != nil {
						t.Error(err)
					}
				}
				all.Wait()
				if s.items != 0 || s.consumed != s.total {
					t.Errorf("%d items are left, %d of %d were taken", s.items, s.consumed, s.total)
				}
			})
		})
	}
}

// disturbances returns the faults that a client's calls meet.
func disturbances(random *rand.Rand) []faulty.Rule {
	var rules []faulty.Rule
	for _, op := range []faulty.Op{faulty.CondWait, faulty.CondSignal, faulty.Acquire, faulty.Release, faulty.Requeue} {
		for _, part := range []faulty.Part{faulty.Request, faulty.Reply} {
			rules = append(rules, faulty.Rule{Op: op, Chance: 0.1, Drop: part, Before: time.Millisecond})
		}
		delay := time.Duration(random.IntN(30)) * time.Millisecond
		rules = append(rules, faulty.Rule{Op: op, Before: delay, After: delay})
	}
	return rules
}

// cook is a producer or a consumer.
type cook struct {
	*store
	c      *Client
	random *rand.Rand
}

// lock takes the mutex, and asks again until it has it. It returns nil if the client is closed.
func (w *cook) lock() *Lease {
	var o LockOptions
	if w.random.IntN(4) == 0 {
		o.MinHold = time.Duration(w.random.IntN(100)) * time.Millisecond
	}
	for start := time.Now(); ; {
		ctx := w.t.Context()
		if w.random.IntN(3) == 0 { // anew, because what is not known to have been granted may be a hold for a while
			ctx = WithOwner(ctx, fmt.Sprint(w.random.Uint64()))
		}
		l, err := w.c.Mutex("a", &o).Lock(ctx)
		switch {
		case err == nil:
			if waited := time.Since(start); waited > 10*second {
				w.t.Errorf("somebody has left the lock for %v", waited)
			}
			return l
		case errors.Is(err, ErrClosed):
			return nil
		case !errors.Is(err, ErrUnavailable):
			w.t.Errorf("Lock: %v", err)
		}
		time.Sleep(time.Millisecond) // virtual
	}
}

// unlock gives the mutex back.
func (w *cook) unlock(l *Lease) {
	w.inside.leave()
	if err := l.Unlock(w.t.Context()); err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrReleased) {
		w.t.Errorf("Unlock: %v", err)
	}
}

// enter notes that w is inside, and stays for a while.
func (w *cook) enter() {
	w.inside.enter()
	if w.inside.max > 1 {
		w.t.Error("two are inside")
	}
	if quiet := time.Since(w.changed); w.items > 0 && w.asleep.Load() > 0 && quiet > 5*second {
		w.t.Errorf("%d sleep, and for %v there have been %d items", w.asleep.Load(), quiet, w.items)
	}
	w.pause(40 * time.Millisecond)
}

// pause sleeps for some virtual time, below most.
func (w *cook) pause(most time.Duration) { time.Sleep(time.Duration(w.random.Int64N(int64(most)))) }

// tell repeats a signal until the engine has confirmed it.
func (w *cook) tell(signal func(context.Context) error) {
	for signal(w.t.Context()) != nil {
		if w.c.in().CheckOpen() != nil {
			return
		}
	}
}

func (w *cook) produce(n int) {
	for range n {
		w.pause(20 * second)
		l := w.lock()
		w.enter()
		w.items++
		w.changed = time.Now()
		if w.random.IntN(2) == 0 { // under the lock, so that the woken waiter stands in line
			w.tell(condOf(w.c).Signal)
			w.disturb()
			w.pause(40 * time.Millisecond)
			w.unlock(l)
		} else {
			w.unlock(l)
			w.tell(condOf(w.c).Signal)
			w.disturb()
		}
	}
}

// disturb ends some wait, perhaps one that has just been signalled.
func (w *cook) disturb() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wakers) == 0 || w.random.IntN(2) == 0 {
		return
	}
	at := w.random.IntN(len(w.wakers))
	for _, cancel := range w.wakers {
		if at--; at < 0 {
			cancel()
			return
		}
	}
}

// sleeping lets disturb end the wait of w by that function; with nil, no longer.
func (w *cook) sleeping(by context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.wakers, w); by != nil {
		w.wakers[w] = by
	}
}

// consume takes items out until all have been taken.
func (w *cook) consume() {
	for {
		l := w.lock()
		if l == nil {
			return
		}
		w.enter()
		if l = w.await(l); l == nil {
			w.pause(time.Minute) // so that the others have to be woken
			continue
		}
		if w.consumed == w.total {
			w.unlock(l)
			return
		}
		w.items--
		w.consumed++
		w.changed = time.Now()
		over := w.consumed == w.total
		w.unlock(l)
		if over {
			w.tell(condOf(w.c).Broadcast)
			return
		}
	}
}

// await waits until there is an item or none will come. It returns nil if its wait has ended before; w is not inside
// then.
func (w *cook) await(l *Lease) *Lease {
	for w.items == 0 && w.consumed < w.total {
		patience := time.Hour
		if w.random.IntN(3) == 0 {
			patience = time.Duration(w.random.IntN(20_000)) * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		w.inside.leave()
		w.asleep.Add(1)
		w.sleeping(cancel)
		next, err := condOf(w.c).Wait(ctx, l)
		w.asleep.Add(-1)
		w.sleeping(nil)
		cancel()
		if err != nil {
			w.gaveUp(l, err, patience)
			return nil
		}
		l = next
		w.enter()
	}
	return l
}

// gaveUp checks the error of a wait that has failed, and when it came.
func (w *cook) gaveUp(l *Lease, err error, patience time.Duration) {
	if l.Err() == nil {
		w.t.Errorf("after %v the hold goes on", err)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed):
	case errors.Is(err, context.DeadlineExceeded) && patience < time.Hour:
	case errors.Is(err, driver.ErrNotHeld) && w.c.in().CheckOpen() != nil:
	default:
		w.t.Errorf("Wait: %v after %v; the last change was %v ago", err, patience, time.Since(w.changed))
	}
}
