package interlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// go vet reports a copy of a struct with a field whose pointer, and not whose value, is a sync.Locker.
func TestCopies_AreReportedByGoVet(t *testing.T) {
	locker := reflect.TypeFor[sync.Locker]()
	for _, of := range []reflect.Type{
		reflect.TypeFor[Client](), reflect.TypeFor[Lease](), reflect.TypeFor[MultiLease](), reflect.TypeFor[Mutex](),
		reflect.TypeFor[RWMutex](),
		reflect.TypeFor[Semaphore](), reflect.TypeFor[Latch](), reflect.TypeFor[Cond](), reflect.TypeFor[Election](),
		reflect.TypeFor[Multi](),
	} {
		if !slices.ContainsFunc(reflect.VisibleFields(of), func(f reflect.StructField) bool {
			return reflect.PointerTo(f.Type).Implements(locker) && !f.Type.Implements(locker)
		}) {
			t.Errorf("%v has no field that go vet looks for", of)
		}
	}
}

func TestACopyOfALease_SaysThatItIsOne(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		copied := reflect.New(reflect.TypeFor[Lease]()).Interface().(*Lease)
		reflect.ValueOf(copied).Elem().Set(reflect.ValueOf(l).Elem()) // as copied := *l, which go vet would report
		ctx := t.Context()
		_, pending := copied.Pending()
		_, waits := condOf(c).Wait(ctx, copied)
		for what, err := range map[string]error{
			"Unlock": copied.Unlock(ctx), "Err": copied.Err(), "Abandon": copied.Abandon(),
			"Extend":  copied.Extend(ctx, time.Second),
			"Upgrade": copied.Upgrade(ctx), "Downgrade": copied.Downgrade(ctx), "Pending": pending, "Wait": waits,
		} {
			if err == nil || !strings.Contains(err.Error(), `mutex "a": the Lease is a copy`) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, f := range map[string]func(){
			"Context": func() { copied.Context(ctx) }, "Lost": func() { copied.Lost() },
			"Stamp":    func() { copied.Stamp() },
			"Deadline": func() { copied.Deadline() }, "Token": func() { copied.Token() },
		} {
			if p := panicOf(f); !strings.Contains(fmt.Sprint(p), "is a copy") {
				t.Errorf("%s panics with %v", what, p)
			}
		}
		if l.Err() != nil {
			t.Errorf("the lease itself says %v", l.Err())
		}
		mustUnlock(t, l)
	})
}

// calls are all methods that take a context. of returns the value of that kind on which each is called.
func calls(ctx context.Context, of func(kind string) any) map[string]func() error {
	client := func() *Client { return of("Client").(*Client) }
	fn := func(context.Context) error { return nil }
	return map[string]func() error{
		"Client.Lock":       func() error { return errOf(client().Lock(ctx, "a")) },
		"Client.TryLock":    func() error { return errOf(client().TryLock(ctx, "a")) },
		"Client.Do":         func() error { return client().Do(ctx, "a", fn) },
		"Client.RWMutex":    func() error { return errOf(client().RWMutex("a", nil).RLock(ctx)) },
		"Client.Semaphore":  func() error { return errOf(client().Semaphore("a", 2, nil).Acquire(ctx, 2)) },
		"Client.Latch":      func() error { return errOf(client().Latch("a").Count(ctx)) },
		"Client.Cond":       func() error { return client().Cond(client().Mutex("a", nil)).Signal(ctx) },
		"Client.Election":   func() error { return errOf(client().Election("a", nil).Campaign(ctx, "")) },
		"Client.Multi":      func() error { return errOf(client().Multi([]string{"a"}, nil).Lock(ctx)) },
		"Client.Break":      func() error { return client().Break(ctx, KindMutex, "a", 1) },
		"Client.Look":       func() error { return errOf(client().Look(ctx, KindMutex, "a")) },
		"Client.List":      func() error { return first2(client().List(ctx, "")) },
		"Mutex.Lock":        func() error { return errOf(of("Mutex").(*Mutex).Lock(ctx)) },
		"Mutex.TryLock":     func() error { return errOf(of("Mutex").(*Mutex).TryLock(ctx)) },
		"Mutex.Do":          func() error { return of("Mutex").(*Mutex).Do(ctx, fn) },
		"Mutex.TryDo":       func() error { return errOf(of("Mutex").(*Mutex).TryDo(ctx, fn)) },
		"MultiOf":           func() error { return errOf(MultiOf(of("Mutex").(*Mutex)).TryLock(ctx)) },
		"Cond of Mutex":     func() error { return errOf(client().Cond(of("Mutex").(*Mutex)).Wait(ctx, nil)) },
		"Client.TryDo":      func() error { return errOf(client().TryDo(ctx, "a", fn)) },
		"RWMutex.Do":        func() error { return of("RWMutex").(*RWMutex).Do(ctx, fn) },
		"RWMutex.TryRDo":    func() error { return errOf(of("RWMutex").(*RWMutex).TryRDo(ctx, fn)) },
		"Semaphore.Do":      func() error { return of("Semaphore").(*Semaphore).Do(ctx, 1, fn) },
		"Semaphore.TryDo":   func() error { return errOf(of("Semaphore").(*Semaphore).TryDo(ctx, 1, fn)) },
		"Election.Lead":     func() error { return of("Election").(*Election).Lead(ctx, "", fn) },
		"RWMutex.Lock":      func() error { return errOf(of("RWMutex").(*RWMutex).Lock(ctx)) },
		"RWMutex.TryRLock":  func() error { return errOf(of("RWMutex").(*RWMutex).TryRLock(ctx)) },
		"RWMutex.Upgr.":     func() error { return errOf(of("RWMutex").(*RWMutex).UpgradeableRLock(ctx)) },
		"Semaphore.Acquire": func() error { return errOf(of("Semaphore").(*Semaphore).Acquire(ctx, 1)) },
		"Semaphore.Try":     func() error { return errOf(of("Semaphore").(*Semaphore).TryAcquire(ctx, 2)) },
		"Latch.Set":         func() error { return errOf(of("Latch").(*Latch).Set(ctx, 1)) },
		"Latch.CountDown":   func() error { return errOf(of("Latch").(*Latch).CountDown(ctx)) },
		"Latch.Count":       func() error { return errOf(of("Latch").(*Latch).Count(ctx)) },
		"Latch.Wait":        func() error { return of("Latch").(*Latch).Wait(ctx) },
		"Cond.Wait":         func() error { return errOf(of("Cond").(*Cond).Wait(ctx, nil)) },
		"Cond.Signal":       func() error { return of("Cond").(*Cond).Signal(ctx) },
		"Cond.Broadcast":    func() error { return of("Cond").(*Cond).Broadcast(ctx) },
		"Election.Campaign": func() error { return errOf(of("Election").(*Election).Campaign(ctx, "")) },
		"Election.Leader":   func() error { return errOf(of("Election").(*Election).Leader(ctx)) },
		"Election.Observe":  func() error { return first2(of("Election").(*Election).Observe(ctx)) },
		"Multi.Lock":        func() error { return errOf(of("Multi").(*Multi).Lock(ctx)) },
		"Multi.TryLock":     func() error { return errOf(of("Multi").(*Multi).TryLock(ctx)) },
		"Multi.Do":          func() error { return of("Multi").(*Multi).Do(ctx, fn) },
		"Lease.Unlock":      func() error { return of("Lease").(*Lease).Unlock(ctx) },
		"Lease.Extend":      func() error { return of("Lease").(*Lease).Extend(ctx, time.Second) },
		"Lease.Upgrade":     func() error { return of("Lease").(*Lease).Upgrade(ctx) },
		"Lease.Downgrade":   func() error { return of("Lease").(*Lease).Downgrade(ctx) },
		"MultiLease.Unlock": func() error { return of("MultiLease").(*MultiLease).Unlock(ctx) },
		// These have no error to return.
		"Mutex.Locker": func() error {
			return panicked(func() { of("Mutex").(*Mutex).Locker(ctx).Lock() })
		},
		"Lease.Context":      func() error { return panicked(func() { of("Lease").(*Lease).Context(ctx) }) },
		"WithOwner":          func() error { return panicked(func() { WithOwner(ctx, "me") }) },
		"OwnerFrom":          func() error { return panicked(func() { OwnerFrom(ctx) }) },
		"AssertHeld":         func() error { return panicked(func() { AssertHeld(ctx, "a") }) },
		"MultiLease.Context": func() error { return panicked(func() { of("MultiLease").(*MultiLease).Context(ctx) }) },
	}
}

// panicked turns what f panics with into an error.
func panicked(f func()) error {
	if p := panicOf(f); p != nil {
		return errors.New(fmt.Sprint(p))
	}
	return nil
}

// first2 returns the first error of a sequence.
func first2[T any](seq func(func(T, error) bool)) (first error) {
	seq(func(_ T, err error) bool {
		first = err
		return false
	})
	return first
}

func TestANilContext_IsSaid(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m, rw := c.Mutex("m", nil), c.RWMutex("rw", nil)
		lease := must(t)(rw.UpgradeableRLock(t.Context()))
		several := c.Multi([]string{"x", "y"}, nil)
		both, err := several.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asked := h.acquires.Load()
		of := func(kind string) any {
			return map[string]any{
				"Client": c, "Mutex": m, "RWMutex": rw, "Semaphore": c.Semaphore("s", 2, nil), "Latch": c.Latch("l"),
				"Cond":     c.Cond(m),
				"Election": c.Election("e", nil), "Multi": several, "Lease": lease, "MultiLease": both,
			}[kind]
		}
		for name, call := range calls(nil, of) { //nolint:staticcheck // a nil context is what it is about
			if err := call(); err == nil || err.Error() != "interlock: nil Context" {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err = Open(nil, "mem://", nil) //nolint:staticcheck // that is the point
		if err == nil || err.Error() != "interlock: nil Context" {
			t.Errorf("Open: %v", err)
		}
		if n := h.acquires.Load(); n != asked {
			t.Errorf("the engine was asked %d times", n-asked)
		}
		if err := errors.Join(lease.Err(), both.Err()); err != nil {
			t.Errorf("the holds say %v", err)
		}
		mustUnlock(t, lease)
		if err := both.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		nothingIsHeld(t, c)
	})
}

func TestWhatNobodyHasMade_SaysWhoMakesIt(t *testing.T) {
	for name, of := range map[string]func(kind string) any{
		"zero": func(kind string) any {
			return map[string]any{
				"Client": &Client{}, "Mutex": &Mutex{}, "RWMutex": &RWMutex{}, "Semaphore": &Semaphore{},
				"Latch": &Latch{}, "Cond": &Cond{},
				"Election": &Election{}, "Multi": &Multi{}, "Lease": &Lease{}, "MultiLease": &MultiLease{},
			}[kind]
		},
		"nil": func(kind string) any {
			return map[string]any{
				"Client": (*Client)(nil), "Mutex": (*Mutex)(nil), "RWMutex": (*RWMutex)(nil),
				"Semaphore": (*Semaphore)(nil), "Latch": (*Latch)(nil),
				"Cond": (*Cond)(nil), "Election": (*Election)(nil), "Multi": (*Multi)(nil), "Lease": (*Lease)(nil),
				"MultiLease": (*MultiLease)(nil),
			}[kind]
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := calls(t.Context(), of)
			lease, multi := of("Lease").(*Lease), of("MultiLease").(*MultiLease)
			all["Client.Close"] = func() error { return of("Client").(*Client).Close() }
			all["Lease.Err"], all["Lease.Abandon"] = lease.Err, lease.Abandon
			all["Lease.Pending"] = func() error { return errOf(lease.Pending()) }
			all["MultiLease.Err"] = multi.Err
			for method, f := range map[string]func(){
				"Kind": func() { lease.Kind() }, "Name": func() { lease.Name() }, "Owner": func() { lease.Owner() },
				"Token": func() { lease.Token() },
				"Stamp": func() { lease.Stamp() }, "Lost": func() { lease.Lost() },
				"Deadline": func() { lease.Deadline() },
			} {
				all["Lease."+method] = func() error { return panicked(f) }
			}
			all["MultiLease.Leases"] = func() error { return panicked(func() { multi.Leases() }) }
			all["MultiLease.Lost"] = func() error { return panicked(func() { multi.Lost() }) }
			for method, call := range all {
				if method == "WithOwner" || method == "OwnerFrom" || method == "AssertHeld" { // functions
					continue
				}
				err := call()
				kind, _, _ := strings.Cut(method, ".")
				says := "interlock: " + kind + " was not made by "
				if method == "MultiOf" || method == "Cond of Mutex" {
					says = " nil"
					if name == "zero" {
						says = "was not made by"
					}
				}
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
}
