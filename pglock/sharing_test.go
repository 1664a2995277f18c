package pglock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// reader asks to read.
func reader(name, id string) *driver.Request {
	r := writer(name, id)
	r.Mode = driver.Shared
	return r
}

func writer(name, id string) *driver.Request {
	r := request(name, id)
	r.Kind = driver.KindRWMutex
	return r
}

func tryOf(t testing.TB, d *Driver, r *driver.Request) error {
	t.Helper()
	r.Try = true
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := d.Acquire(ctx, r)
	return err
}

// Each reader has a session of his own, because one that has the lock gets it again past those who wait, and even to
// write.
func TestReadersOfOneClient_HaveASessionEach_AndNoMoreThanThereAre(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	o := Options{Table: table, Shared: 2, Waits: 2}
	d := open(t.Context(), t, n.Addr(), o)
	defer func() { _ = d.Close() }()
	var inside []*driver.Request
	for i := range o.Shared + o.Waits {
		r := reader("x", fmt.Sprint("reader ", i))
		if i%2 == 0 {
			acquire(t, d, r)
		} else if err := tryOf(t, d, r); err != nil {
			t.Fatalf("reader %d: %v", i, err)
		}
		inside = append(inside, r)
	}
	ops := newAdmin(t, n)
	const readers = "SELECT count(*)::text || ' ' || count(DISTINCT l.pid)::text FROM pg_locks l JOIN %s t ON " +
		number +
		" = t.key WHERE l.mode = 'ShareLock'"
	if got := ops.one(readers, table); got != "4 4" {
		t.Errorf("readers and their sessions are %s, want 4 4", got)
	}
	err := tryOf(t, d, reader("x", "one too many"))
	if !errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrHeld) {
		t.Errorf("a try without a session left says %v", err)
	}
	acquire(t, d, writer("y", "other locks go on"))
	waits := make(chan error, 1)
	go func() { // ends when a reader has left
		_, err := d.Acquire(t.Context(), reader("x", "waits"))
		waits <- err
	}()
	release(t, d, inside[0])
	if err := <-waits; err != nil {
		t.Errorf("a reader for whom a session has become free: %v", err)
	}
}

// listsReaders reports whether the lock x is listed with these three readers and one writer that waits.
func listsReaders(t *testing.T, d *Driver, readers ...*driver.Request) error {
	t.Helper()
	for info, err := range d.Locks(t.Context(), "x") {
		if err != nil {
			return err
		}
		if info.Kind != driver.KindRWMutex || len(info.Holders) != 3 || len(info.Waiters) != 1 ||
			info.Waiters[0].Shared {
			return fmt.Errorf("listed: %+v", info)
		}
		owners := make(map[string]bool)
		for _, h := range info.Holders {
			owners[h.Owner] = h.Shared && h.Token != 0
		}
		for _, r := range readers {
			if !owners[r.Owner] {
				t.Errorf("the holders are %+v", info.Holders)
			}
		}
	}
	return nil
}

func TestReaders_AreListedAndBrokenOneByOne(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a, b := open(t.Context(), t, n.Addr(), Options{Table: table}), open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _, _ = a.Close(), b.Close() }()
	told := make(chan driver.LostReason, 1)
	one, two, three := reader("x", "1"), reader("x", "2"), reader("x", "3")
	two.Lost = func(reason driver.LostReason, _ error) { told <- reason }
	acquire(t, a, one)
	g := acquire(t, a, two)
	acquire(t, b, three)
	waiting := writer("x", "4")
	queued := make(chan struct{}, 8)
	waiting.Waiting = func(*driver.HeldError) { queued <- struct{}{} }
	wrote := make(chan error, 1)
	go func() { // ends when all readers have left
		_, err := b.Acquire(t.Context(), waiting)
		wrote <- err
	}()
	<-queued
	until(t, patience, func() error { return listsReaders(t, a, one, two, three) })
	if err := b.Break(t.Context(), two.Key, g.Token); err != nil {
		t.Fatal(err)
	}
	if reason := <-told; reason != driver.LostBroken {
		t.Errorf("the broken reader is told %v", reason)
	}
	var held *driver.HeldError
	if err := b.Break(t.Context(), two.Key, g.Token); !errors.As(err, &held) || held.Token == 0 ||
		held.Token == g.Token {
		t.Errorf("a second break says %v, want another reader", err)
	}
	release(t, a, one)
	release(t, b, three)
	if err := <-wrote; err != nil {
		t.Errorf("the writer after the last reader: %v", err)
	}
}

func TestRWMutex_ReadersAndWritersOfTwoClients_NeverMeet(t *testing.T) {
	n := sharedServer(t)
	query := "&table=" + ownTable()
	clients := []*interlock.Client{client(t, n.Addr(), query, time.Minute), client(t, n.Addr(), query, time.Minute)}
	const name = "rw"
	var mu sync.Mutex
	var readers, writers, most int
	enter := func(r, w int) {
		mu.Lock()
		defer mu.Unlock()
		readers, writers = readers+r, writers+w
		most = max(most, readers)
		if writers > 1 || writers == 1 && readers > 0 {
			t.Errorf("%d writers and %d readers are inside", writers, readers)
		}
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			m := clients[i%2].RWMutex(name, nil)
			for range 8 {
				lock, r, w := m.RLock, 1, 0
				if i < 4 {
					lock, r, w = m.Lock, 0, 1
				}
				l, err := lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				enter(r, w)
				<-time.After(time.Millisecond) // real: others get in meanwhile, if they may
				enter(-r, -w)
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if most < 2 {
		t.Error("no two readers were inside together")
	}
	if _, err := clients[0].RWMutex(name, nil).UpgradeableRLock(t.Context()); !errors.Is(err,
		interlock.ErrUnsupported) {
		t.Errorf("UpgradeableRLock says %v", err)
	}
}
