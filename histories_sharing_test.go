package interlock

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/memlock"
)

// Random calls on read/write locks and a semaphore, each step compared with a model: kit_sharing_model_test.go is the
// model, kit_sharing_check_test.go the comparison.

var (
	sharingSeed  = flag.Uint64("sharing.seed", 0, "replay the history of readers, writers and permits with this seed")
	sharingCount = flag.Uint64("sharing.count", longrun.Of[uint64](30, 60), "how many such histories to run")
)

// TestSharing_InRandomHistories_DoesWhatTheModelSays makes random calls of the public API on two read/write locks and a
// semaphore, by owners with and without a name on several clients of one memory engine, in virtual time. After each
// step everything that can be seen must be as the model (kit_sharing_model_test.go) says: answers, waits, stamps, and
// what operators see.
func TestSharing_InRandomHistories_DoesWhatTheModelSays(t *testing.T) {
	first, count := *sharingSeed, uint64(1)
	if first == 0 {
		first, count = rand.Uint64()>>1+1, *sharingCount
	}
	for seed := first; seed < first+count; seed++ {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSharing(t, rand.New(rand.NewPCG(seed, 0))).run(120) })
		})
		if !ok {
			t.Fatalf("replay it with: go test -run RandomHistories -sharing.seed %d .", seed)
		}
	}
}

// sharing is one random history: the clients, the actors, and the model that they are compared with.
type sharing struct {
	t      *testing.T
	r      *rand.Rand
	store  *memlock.Driver
	hooks  []*hooks
	c      []*Client // the last one crashes now and then
	actors []*actor
	locks  []*modelLock
	newest []uint64 // tokens, by lock
	calls  []*pending
	leases map[*modelHold]*Lease
	trace  []string
}

// actor is an owner that makes calls, with a name or without.
type actor struct {
	c    int // its client; a named one uses any that does not crash
	name string
	ctx  context.Context //nolint:containedctx // carries the owner
	busy bool            // waits for something
}

// pending is a call under way, and the hold that the model says it asks for.
type pending struct {
	who, lock int
	h         *modelHold
	want      verdict
	cancel    context.CancelFunc
	out       chan outcome
}

func newSharing(t *testing.T, r *rand.Rand) *sharing {
	s := &sharing{
		t: t, r: r, store: memlock.New(nil), leases: make(map[*modelHold]*Lease),
		locks: []*modelLock{{}, {}, {limit: 3}}, newest: make([]uint64, 3),
	}
	for range 3 {
		s.open()
	}
	for i := range 9 {
		a := &actor{c: i % 3}
		a.ctx = context.WithValue(t.Context(), core.OwnerKey{}, &core.Owner{ID: fmt.Sprint("anonymous ", i)})
		if i >= 7 {
			a.name = fmt.Sprint("named ", i)
			a.ctx = WithOwner(t.Context(), a.name)
		}
		s.actors = append(s.actors, a)
	}
	return s
}

func (s *sharing) open() {
	h := newHooks(s.store.Peer())
	s.hooks = append(s.hooks, h)
	c := mustNew(s.t, h, &Options{CloseTimeout: time.Millisecond})
	c.in().Lock()
	// No search for deadlocks: an actor that waits unlocks other holds meanwhile, and a search cannot know that.
	c.in().Deadlocks.At = trust.Never - 1
	c.in().Unlock()
	s.c = append(s.c, c)
}

func (s *sharing) note(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

func (s *sharing) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\n%s", strings.Join(s.trace[max(0, len(s.trace)-40):], "\n"), fmt.Sprintf(format, args...))
}

func (s *sharing) run(steps int) {
	defer func() { // also after a Fatal
		for i, c := range s.c {
			_ = c.Close()
			_ = s.hooks[i].Driver.Close()
		}
		_ = s.store.Close()
	}()
	for range steps {
		s.step()
		synctest.Wait()
		s.answers()
		s.compare()
	}
	s.giveAllBack()
}

func (s *sharing) step() {
	i := s.r.IntN(len(s.locks))
	switch n := s.r.IntN(100); {
	case n < 45:
		s.acquire(i)
	case n < 70:
		s.unlock(i)
	case n < 78:
		s.upgrade(i)
	case n < 84:
		s.downgrade(i)
	case n < 91:
		s.giveUp()
	case n < 94:
		s.breakOne(i)
	case n < 96:
		s.crash()
	default:
		time.Sleep(time.Duration(s.r.IntN(40)) * time.Second)
	}
}

// idle returns an actor that waits for nothing.
func (s *sharing) idle() (who int, c *Client) {
	for who = s.r.IntN(len(s.actors)); s.actors[who].busy; who = (who + 1) % len(s.actors) {
		if !slices.ContainsFunc(s.actors, func(a *actor) bool { return !a.busy }) {
			return -1, nil
		}
	}
	at := s.actors[who].c
	if s.actors[who].name != "" {
		at = s.r.IntN(2)
	}
	return who, s.c[at]
}

func (s *sharing) acquire(i int) {
	who, c := s.idle()
	if who < 0 {
		return
	}
	h := &modelHold{who: who, mode: driver.Mode(s.r.IntN(3)), weight: 1}
	try := s.r.IntN(4) == 0
	ask := map[driver.Mode][2]func(*RWMutex, context.Context) (*Lease, error){
		driver.Exclusive:   {(*RWMutex).Lock, (*RWMutex).TryLock},
		driver.Shared:      {(*RWMutex).RLock, (*RWMutex).TryRLock},
		driver.Upgradeable: {(*RWMutex).UpgradeableRLock, (*RWMutex).TryUpgradeableRLock},
	}[h.mode]
	m := c.RWMutex(fmt.Sprint("rw", i), nil)
	do := func(ctx context.Context) (*Lease, error) { return ask[0](m, ctx) }
	if try {
		do = func(ctx context.Context) (*Lease, error) { return ask[1](m, ctx) }
	}
	if s.locks[i].limit > 0 {
		h.mode, h.weight = driver.Shared, 1+s.r.IntN(3)
		sem := c.Semaphore(fmt.Sprint("rw", i), s.locks[i].limit, nil)
		do = func(ctx context.Context) (*Lease, error) { return sem.Acquire(ctx, h.weight) }
		if try {
			do = func(ctx context.Context) (*Lease, error) { return sem.TryAcquire(ctx, h.weight) }
		}
	}
	s.call(who, i, h, try, do)
}

// call makes a call and asks the model about it.
func (s *sharing) call(who, lock int, h *modelHold, try bool, do func(context.Context) (*Lease, error)) {
	ctx, cancel := context.WithCancel(s.actors[who].ctx)
	p := &pending{
		who: who, lock: lock, h: h, want: s.locks[lock].ask(h, try), cancel: cancel,
		out: make(chan outcome, 1),
	}
	s.note("%d asks lock %d for mode %d, %d permits, try %v, upgrade %v: %s", who, lock, h.mode, h.weight, try,
		h.of != nil, p.want)
	s.actors[who].busy = true
	s.calls = append(s.calls, p)
	go func() { // ends with the call, at the latest when the clients are closed
		l, err := do(ctx)
		p.out <- outcome{l, err}
	}()
}

// pick returns a hold of an actor who waits for nothing.
func (s *sharing) pick(i int, is func(*modelHold) bool) *modelHold {
	var from []*modelHold
	for _, h := range s.locks[i].holds {
		if !s.actors[h.who].busy && is(h) {
			from = append(from, h)
		}
	}
	if len(from) == 0 {
		return nil
	}
	return from[s.r.IntN(len(from))]
}

func (s *sharing) unlock(i int) {
	h := s.pick(i, func(*modelHold) bool { return true })
	if h == nil {
		return
	}
	s.note("%d unlocks lock %d, mode %d", h.who, i, h.mode)
	s.locks[i].end(func(o *modelHold) bool { return o == h })
	if err := s.leases[h].Unlock(s.t.Context()); err != nil {
		s.fail("Unlock: %v", err)
	}
}

func (s *sharing) upgrade(i int) {
	h := s.pick(i, func(h *modelHold) bool { return h.mode == driver.Upgradeable })
	if h == nil {
		return
	}
	l := s.leases[h]
	w := &modelHold{who: h.who, mode: driver.Exclusive, weight: 1, of: h}
	s.call(h.who, i, w, false, func(ctx context.Context) (*Lease, error) { return l, l.Upgrade(ctx) })
}

func (s *sharing) downgrade(i int) {
	h := s.pick(i, func(h *modelHold) bool { return h.mode == driver.Exclusive })
	if h == nil {
		return
	}
	s.note("%d downgrades lock %d", h.who, i)
	s.locks[i].downgrade(h)
	if err := s.leases[h].Downgrade(s.t.Context()); err != nil {
		s.fail("Downgrade: %v", err)
	}
}

// giveUp ends the context of a wait.
func (s *sharing) giveUp() {
	if len(s.calls) == 0 {
		return
	}
	p := s.calls[s.r.IntN(len(s.calls))]
	s.note("%d gives up waiting for lock %d", p.who, p.lock)
	s.locks[p.lock].end(func(o *modelHold) bool { return o == p.h })
	p.want = isHeld
	p.cancel()
}
