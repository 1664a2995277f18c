package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// hungLimit tells who waits for a context from who waits for the server. It is generous, because all calls are made at
// once; how exact one call is TestHung_EveryOperationReturnsWithItsContext shows.
const hungLimit = 4 * time.Second

// The same for every other kind of lock than a mutex, and for what is made of several.
func TestHung_EveryKindOfLock_ReturnsWithItsContext(t *testing.T) {
	for name, start := range map[string]func(t testing.TB) *hung{
		"AServerThatIsStopped":   hungServer,
		"AProxyWithoutReplies":   func(t testing.TB) *hung { return hungProxy(t, servers.ToClient) },
		"EveryNodeUnderSentinel": hungSentinel,
		"EveryNodeOfACluster":    hungCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kindsHung(t, start(t))
		})
	}
}

// kinds are two clients, of which the second holds what the first is to wait for.
type kinds struct {
	t       testing.TB
	c, busy *interlock.Client
	d       driver.Driver // of a third

	mayBeFree []func(after *interlock.Client) (*interlock.Lease, error) // takes what is free when all is over
	stays     []*interlock.Lease                                        // are held then
}

func kindsHung(t *testing.T, h *hung) {
	o := &interlock.Options{Lease: 30 * time.Second, ClientName: "hung", CloseTimeout: hungTime}
	k := &kinds{t: t, c: openLocks(t, h.url, o), busy: openLocks(t, h.url, o)}
	var err error
	if k.d, err = driver.DefaultMux.Open(patient(t), withQuery(h.url, "check", "none"), driver.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.d.Close() })
	calls := slices.Concat(k.sharing(), k.counting(), k.leading(), k.conditions(), k.several(), k.looking())
	waits := k.underWay()
	h.hang(t)
	allEnd(t, calls)
	waits()
	h.goOn(t)
	after := openLocks(t, h.url, o)
	for i, take := range k.mayBeFree { // the undoing goes on until it is done
		l, err := take(after)
		if err != nil {
			t.Fatalf("number %d of what nobody holds cannot be had: %v", i, err)
		}
		mustUnlock(t, l)
	}
	for _, l := range k.stays {
		if err := l.Err(); err != nil {
			t.Errorf("the hold of %q did not outlast it: %v", l.Name(), err)
		}
	}
}

// allEnd makes all calls at once, and wants each to say in time that it does not know.
func allEnd(t *testing.T, calls []hungCall) {
	t.Helper()
	type end struct {
		name string
		err  error
		took time.Duration
	}
	ends, missing := make(chan end, len(calls)), make(map[string]bool)
	for _, call := range calls {
		missing[call.name] = true
		go func() { // ends with the context, or fails the test
			ctx, cancel := context.WithTimeout(context.Background(), hungTime)
			defer cancel()
			begin := time.Now()
			err := call.call(ctx, 0)
			ends <- end{call.name, err, time.Since(begin)}
		}()
	}
	if len(missing) != len(calls) {
		t.Fatalf("%d of %d names", len(missing), len(calls))
	}
	for timer := time.After(hungTime + hungLimit); len(missing) > 0; {
		select {
		case e := <-ends:
			delete(missing, e.name)
			switch {
			case e.err == nil:
				t.Errorf("%s: it has succeeded while everybody hangs", e.name)
			case !errors.Is(e.err, interlock.ErrUnavailable) && !errors.Is(e.err, context.DeadlineExceeded):
				t.Errorf("%s: the error says something else than that nobody answers: %v", e.name, e.err)
			default:
				t.Logf("%-30s %v: %v", e.name, e.took.Round(time.Millisecond), e.err)
			}
		case <-timer:
			t.Errorf("%v after their contexts have ended these are under way: %q",
				hungLimit, slices.Sorted(maps.Keys(missing)))
			return
		}
	}
}

// held returns what must be had before everybody hangs.
func (k *kinds) held(l *interlock.Lease, err error) *interlock.Lease {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
	return l
}

// locking is an operation that returns a hold.
func locking(name string, f func(ctx context.Context) (*interlock.Lease, error)) hungCall {
	return hungCall{name, func(ctx context.Context, _ int) error { return second(f(ctx)) }}
}

// sharing are the operations of read/write locks.
func (k *kinds) sharing() []hungCall {
	rw := func(name string) *interlock.RWMutex { return k.c.RWMutex(name, nil) }
	k.held(k.busy.RWMutex("written", nil).Lock(patient(k.t)))
	read, upgraded := k.held(rw("read").RLock(patient(k.t))), k.held(rw("upgraded").UpgradeableRLock(patient(k.t)))
	down, written := k.held(rw("down").Lock(patient(k.t))), k.held(rw("was written").Lock(patient(k.t)))
	back := k.held(rw("back").UpgradeableRLock(patient(k.t)))
	if err := back.Upgrade(patient(k.t)); err != nil {
		k.t.Fatal(err)
	}
	k.stays = append(k.stays, upgraded)
	for _, name := range []string{
		"rlock", "try rlock", "wlock", "try wlock", "ulock", "try ulock", "read", "was written",
	} {
		k.mayBeFree = append(k.mayBeFree, func(after *interlock.Client) (*interlock.Lease, error) {
			return after.RWMutex(name, nil).Lock(patient(k.t))
		})
	}
	return []hungCall{
		locking("RWMutex.RLock", rw("rlock").RLock),
		locking("RWMutex.TryRLock", rw("try rlock").TryRLock),
		locking("RWMutex.Lock", rw("wlock").Lock),
		locking("RWMutex.TryLock", rw("try wlock").TryLock),
		locking("RWMutex.UpgradeableRLock", rw("ulock").UpgradeableRLock),
		locking("RWMutex.TryUpgradeableRLock", rw("try ulock").TryUpgradeableRLock),
		locking("RLock of what another writes", rw("written").RLock),
		{"Unlock of a read", func(ctx context.Context, _ int) error { return read.Unlock(ctx) }},
		{"Unlock of a write", func(ctx context.Context, _ int) error { return written.Unlock(ctx) }},
		{"Upgrade", func(ctx context.Context, _ int) error { return upgraded.Upgrade(ctx) }},
		{"Downgrade", func(ctx context.Context, _ int) error { return down.Downgrade(ctx) }},
		{"Downgrade of what was upgraded", func(ctx context.Context, _ int) error { return back.Downgrade(ctx) }},
	}
}

// counting are the operations of semaphores and latches.
func (k *kinds) counting() []hungCall {
	sem := func(c *interlock.Client, name string) *interlock.Semaphore { return c.Semaphore(name, 2, nil) }
	k.held(sem(k.busy, "all taken").Acquire(patient(k.t), 2))
	permit := k.held(sem(k.c, "one taken").Acquire(patient(k.t), 1))
	for _, name := range []string{"acquire", "try acquire", "one taken"} {
		k.mayBeFree = append(k.mayBeFree, func(after *interlock.Client) (*interlock.Lease, error) {
			return sem(after, name).Acquire(patient(k.t), 2)
		})
	}
	latch := k.c.Latch("counts")
	if set, err := latch.Set(patient(k.t), 3); err != nil || !set {
		k.t.Fatalf("set %v, %v", set, err)
	}
	return []hungCall{
		locking("Semaphore.Acquire", func(ctx context.Context) (*interlock.Lease, error) {
			return sem(k.c, "acquire").Acquire(ctx, 2)
		}),
		locking("Semaphore.TryAcquire", func(ctx context.Context) (*interlock.Lease, error) {
			return sem(k.c, "try acquire").TryAcquire(ctx, 1)
		}),
		locking("Acquire of what others have", func(ctx context.Context) (*interlock.Lease, error) {
			return sem(k.c, "all taken").Acquire(ctx, 1)
		}),
		{"Unlock of a permit", func(ctx context.Context, _ int) error { return permit.Unlock(ctx) }},
		{"Latch.Set", func(ctx context.Context, _ int) error {
			_, err := k.c.Latch("new").Set(ctx, 1)
			return err
		}},
		{"Latch.CountDown", func(ctx context.Context, _ int) error {
			_, err := latch.CountDown(ctx)
			return err
		}},
		{"Latch.Count", func(ctx context.Context, _ int) error {
			_, err := latch.Count(ctx)
			return err
		}},
		{"Latch.Wait", func(ctx context.Context, _ int) error { return latch.Wait(ctx) }},
	}
}

// leading are the operations of elections.
func (k *kinds) leading() []hungCall {
	led := k.c.Election("led", nil)
	k.held(k.busy.Election("led", nil).Campaign(patient(k.t), "busy"))
	term := k.held(k.c.Election("resigned", nil).Campaign(patient(k.t), "me"))
	for _, name := range []string{"campaign", "resigned"} {
		k.mayBeFree = append(k.mayBeFree, func(after *interlock.Client) (*interlock.Lease, error) {
			return after.Election(name, nil).Campaign(patient(k.t), "after")
		})
	}
	return []hungCall{
		locking("Campaign", func(ctx context.Context) (*interlock.Lease, error) {
			return k.c.Election("campaign", nil).Campaign(ctx, "me")
		}),
		locking("Campaign against a leader", func(ctx context.Context) (*interlock.Lease, error) {
			return led.Campaign(ctx, "me")
		}),
		{"Unlock of a leader", func(ctx context.Context, _ int) error { return term.Unlock(ctx) }},
		{"Leader", func(ctx context.Context, _ int) error {
			_, err := led.Leader(ctx)
			return err
		}},
		{"Observe", func(ctx context.Context, _ int) error {
			for leader, err := range led.Observe(ctx) {
				if err == nil {
					return fmt.Errorf("it yields %+v", leader)
				}
			}
			return ctx.Err()
		}},
	}
}

// conditions are the operations of conditions.
func (k *kinds) conditions() []hungCall {
	m := k.c.Mutex("condition", nil)
	cond, l := k.c.Cond(m), k.held(m.Lock(patient(k.t)))
	k.mayBeFree = append(k.mayBeFree, func(after *interlock.Client) (*interlock.Lease, error) {
		return after.Lock(patient(k.t), "condition") // after every error of Wait nothing is held
	})
	return []hungCall{
		locking("Cond.Wait", func(ctx context.Context) (*interlock.Lease, error) { return cond.Wait(ctx, l) }),
		{"Cond.Signal", func(ctx context.Context, _ int) error { return cond.Signal(ctx) }},
		{"Cond.Broadcast", func(ctx context.Context, _ int) error { return cond.Broadcast(ctx) }},
	}
}

// several are the operations of several locks: in one step, and one after the other.
func (k *kinds) several() []hungCall {
	together := func(what string) *interlock.Multi { return k.c.Multi([]string{"{m}" + what, "{m}other " + what}, nil) }
	apart := func(what string) *interlock.Multi {
		return k.c.Multi([]string{"a" + what, "b" + what}, &interlock.LockOptions{LockDelay: time.Second})
	}
	all, err := together("held").Lock(patient(k.t))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range []string{"{m}held", "{m}other held", "{m}lock", "{m}try", "{m}do", "alock", "atry"} {
		k.mayBeFree = append(k.mayBeFree, func(after *interlock.Client) (*interlock.Lease, error) {
			return after.Lock(patient(k.t), name)
		})
	}
	multi := func(name string, f func(ctx context.Context) (*interlock.MultiLease, error)) hungCall {
		return hungCall{name, func(ctx context.Context, _ int) error {
			_, err := f(ctx)
			return err
		}}
	}
	return []hungCall{
		multi("Multi.Lock", together("lock").Lock),
		multi("Multi.TryLock", together("try").TryLock),
		multi("Multi.Lock, one by one", apart("lock").Lock),
		multi("Multi.TryLock, one by one", apart("try").TryLock),
		{"Multi.Do", func(ctx context.Context, _ int) error {
			return together("do").Do(ctx, func(context.Context) error { return nil })
		}},
		{"MultiLease.Unlock", func(ctx context.Context, _ int) error { return all.Unlock(ctx) }},
	}
}

// looking are the operations of operators, and those of the driver that no other has.
func (k *kinds) looking() (calls []hungCall) {
	for kind, name := range map[interlock.Kind]string{
		interlock.KindMutex: "nobody's", interlock.KindRWMutex: "written", interlock.KindSemaphore: "all taken",
		interlock.KindElection: "led",
	} {
		calls = append(calls,
			hungCall{"Look at " + string(kind), func(ctx context.Context, _ int) error {
				_, err := k.c.Look(ctx, kind, name)
				return err
			}},
			hungCall{"Break of " + string(kind), func(ctx context.Context, _ int) error {
				return k.c.Break(ctx, kind, name, 1)
			}})
	}
	for _, kind := range []driver.Kind{driver.KindElection, driver.KindLatch} {
		calls = append(calls, hungCall{"Watch of " + string(kind), func(ctx context.Context, _ int) error {
			return k.d.(driver.Watcher).Watch(ctx, driver.Key{Kind: kind, Name: "led"}, func() {})
		}})
	}
	return append(calls, hungCall{"Diagnose", func(ctx context.Context, _ int) error {
		for _, f := range k.d.(driver.Diagnoser).Diagnose(ctx) {
			if f.Level == driver.LevelFail {
				return driver.ErrUnavailable
			}
		}
		return nil
	}})
}

// underWay begins to wait for what others have, and returns when all are queued. The function that it returns ends the
// waits, and wants them back.
func (k *kinds) underWay() func() {
	ctx, cancel := context.WithCancel(context.Background())
	k.t.Cleanup(cancel)
	waits := map[string]func() error{
		"RLock":        func() error { return second(k.c.RWMutex("written", nil).RLock(ctx)) },
		"RWMutex.Lock": func() error { return second(k.c.RWMutex("written", nil).Lock(ctx)) },
		"Acquire":      func() error { return second(k.c.Semaphore("all taken", 2, nil).Acquire(ctx, 1)) },
		"Campaign":     func() error { return second(k.c.Election("led", nil).Campaign(ctx, "me")) },
		"Latch.Wait":   func() error { return k.c.Latch("counts").Wait(ctx) },
		"Observe": func() error {
			for range k.c.Election("led", nil).Observe(ctx) {
			}
			return ctx.Err()
		},
	}
	type end struct {
		name string
		err  error
	}
	ends := make(chan end, len(waits))
	for name, wait := range waits {
		go func() { ends <- end{name, wait()} }() // ends with ctx
	}
	for kind, want := range map[interlock.Kind]struct {
		name    string
		waiters int
	}{
		interlock.KindRWMutex: {"written", 2}, interlock.KindSemaphore: {"all taken", 1},
		interlock.KindElection: {"led", 1},
	} {
		soon(k.t, "the waits to be queued", func() bool {
			info, err := k.busy.Look(patient(k.t), kind, want.name)
			return err == nil && len(info.Waiters) == want.waiters
		})
	}
	return func() {
		k.t.Helper()
		begin := time.Now()
		cancel()
		for range waits {
			if e := receive(k.t, "the waits that were under way to end", ends); !errors.Is(e.err, context.Canceled) {
				k.t.Errorf("%s, which was under way, ends with %v", e.name, e.err)
			}
		}
		if took := time.Since(begin); took > hungLimit {
			k.t.Errorf("the waits that were under way have ended after %v", took)
		}
	}
}
