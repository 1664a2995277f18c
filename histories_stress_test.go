package interlock

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/memlock"
)

// Everything at once in real time, which is what the race detector needs.

var stressSeed = flag.Uint64("stress.seed", 0, "replay the stress test with this seed (the schedule is the machine's)")

// TestStress does everything at once in real time, for the race detector. It also asserts that trusted holds exclude
// each other, that tokens grow, and that nothing is left at the end. Breaking has a run of its own: a broken holder
// learns of it after the fact, so the next one may be inside for an instant before.
func TestStress(t *testing.T) {
	t.Run("RandomCallsOfManyGoroutines", func(t *testing.T) { stress(t, false) })
	t.Run("AndAnOperatorWhoBreaks", func(t *testing.T) { stress(t, true) })
}

func stress(t *testing.T, breaking bool) {
	seed := *stressSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	d := memlock.New(nil)
	defer d.Close()
	remote := newHooks(d.Peer())
	defer remote.Close()
	opts := &Options{Lease: 60 * time.Millisecond, LocalHandoffTime: time.Millisecond, CloseTimeout: 10 * time.Second}
	far := newHooks(d.Peer())
	defer far.Close()
	clients := []*Client{mustNew(t, d, opts), mustNew(t, remote, opts), mustNew(t, leading{far}, opts)}
	names := make([]register, 3)
	ctx, cancel := context.WithTimeout(t.Context(), longrun.Of[time.Duration](500, 1500)*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			s := stressor{
				t: t, rand: rand.New(rand.NewPCG(seed, uint64(i))), c: clients[i%len(clients)], names: names,
				breaking: breaking,
			}
			for ctx.Err() == nil {
				s.act(ctx)
			}
		})
	}
	all.Wait()
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	c := mustNew(t, d, nil)
	defer c.Close()
	for info, err := range c.List(t.Context(), "") {
		t.Errorf("left over: %+v %v", info, err)
	}
}

// register is what a lock protects: who is inside, and the largest token seen.
type register struct {
	mu     sync.Mutex
	holder *Lease
	token  uint64
}

// enter notes that l's owner is inside, and fails if another one is whose hold is still trusted.
func (r *register) enter(t *testing.T, l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Err() != nil {
		return
	}
	if other := r.holder; other != nil && other.Owner() != l.Owner() && other.Err() == nil && l.Err() == nil {
		t.Errorf("%q: tokens %d and %d are both held", l.Name(), other.Token(), l.Token())
	}
	if l.Token() < r.token {
		t.Errorf("%q: token %d after %d", l.Name(), l.Token(), r.token)
	}
	r.holder, r.token = l, max(l.Token(), r.token)
}

type stressor struct {
	t     *testing.T
	rand  *rand.Rand
	c     *Client
	names []register

	breaking bool
}

func (s *stressor) act(ctx context.Context) {
	n := s.rand.IntN(len(s.names))
	opts := &LockOptions{NoRenew: s.rand.IntN(4) == 0}
	if s.rand.IntN(6) == 0 {
		opts.MaxHold = time.Millisecond
	}
	m := s.c.Mutex(strconv.Itoa(n), opts)
	if s.rand.IntN(8) == 0 {
		ctx = WithOwner(ctx, "owner-"+strconv.Itoa(s.rand.IntN(3)))
	}
	waiting, cancel := context.WithTimeout(ctx, time.Duration(s.rand.IntN(3000))*time.Microsecond)
	defer cancel()
	lock := m.Lock
	if s.rand.IntN(4) == 0 {
		lock = m.TryLock
	}
	l, err := lock(waiting)
	if err != nil {
		_, named := OwnerFrom(ctx) // another goroutine of a named owner may have lost it, and not unlocked it yet
		if !errors.Is(err, ErrHeld) && waiting.Err() == nil && !(named && errors.Is(err, ErrLost)) {
			s.t.Errorf("lock: %v", err)
		}
		return
	}
	if !s.breaking {
		s.names[n].enter(s.t, l)
	}
	s.work(ctx, m, l)
}

func (s *stressor) work(ctx context.Context, m *Mutex, l *Lease) {
	switch s.rand.IntN(6) {
	case 0:
		_ = l.Extend(ctx, 100*time.Millisecond)
	case 1:
		if inner, err := m.Lock(l.Context(ctx)); err == nil {
			_ = inner.Unlock(ctx)
		}
	case 2:
		if !s.breaking {
			break
		}
		_ = s.c.Break(ctx, KindMutex, m.lock.Key().Name, l.Token())
	case 3:
		select {
		case <-l.Lost():
		case <-time.After(time.Duration(s.rand.IntN(2000)) * time.Microsecond):
		}
	}
	ended, cancel := context.WithCancel(ctx)
	if s.rand.IntN(3) == 0 {
		cancel()
	}
	defer cancel()
	_ = l.Unlock(ended)
}
