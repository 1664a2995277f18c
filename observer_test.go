package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary records what an Observer is told, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) note(what string, e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf("%s %s/%s waited %v local %v err %v", what, e.Name, e.Class, e.Waited,
		e.Local, e.Err != nil))
}

func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.entries
	d.entries = nil
	return taken
}

func (d *diary) observer() *Observer {
	return &Observer{
		Waiting:  func(_ context.Context, e Event) { d.note("waiting", e) },
		Acquired: func(_ context.Context, e Event) { d.note("acquired", e) },
		Failed:   func(_ context.Context, e Event) { d.note("failed", e) },
		Renewed:  func(e Event) { d.note("renewed", e) },
		Lost:     func(e Event) { d.note("lost", e) },
		Released: func(e Event) { d.note("released", e) },
	}
}

func TestObserver_IsToldTheLifeOfAHold(t *testing.T) {
	var d diary
	bubble(t, &Options{Observer: d.observer(), LocalHandoffTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		want := func(entries ...string) {
			t.Helper()
			synctest.Wait()
			if got := d.take(); !slices.Equal(got, entries) {
				t.Errorf("got  %q\nwant %q", got, entries)
			}
		}
		m := c.Mutex("a", &LockOptions{Class: "stock"})
		first, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want("acquired a/stock waited 0s local false err false")
		next := make(chan *Lease)
		go func() {
			l, _ := m.Lock(t.Context())
			next <- l
		}()
		want("waiting a/stock waited 0s local false err false")
		if _, err := m.TryLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Fatal(err)
		}
		want("failed a/stock waited 0s local false err true")
		time.Sleep(3 * second)
		mustUnlock(t, first)
		second := <-next
		synctest.Wait()
		if got := d.take(); len(got) != 2 || !slices.Contains(got, "acquired a/stock waited 3s local true err false") {
			t.Errorf("got %q", got)
		}
		time.Sleep(10 * time.Second)
		want("renewed a/stock waited 3s local true err false")
		on(h, &h.renew, noRenewals)
		<-second.Lost()
		want("lost a/stock waited 3s local true err true")
	})
}

func TestObserver_MayUseTheLease(t *testing.T) {
	var c *Client
	var observed *Lease
	o := &Observer{
		Released: func(Event) { _ = observed.Err() },
		Acquired: func(ctx context.Context, _ Event) { _ = c.in().CheckOpen() },
	}
	bubble(t, &Options{Observer: o}, func(t *testing.T, client *Client, _ *hooks) {
		c = client
		observed = mustLock(t, t.Context(), c, "a")
		mustUnlock(t, observed)
	})
}

func TestLocks_ShowsHoldersAndWaiters(t *testing.T) {
	bubble(t, &Options{ClientName: "here:1"}, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, &Options{ClientName: "there:2"})
		l, err := c.Mutex("shop/a", &LockOptions{Label: "nightly"}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b := mustLock(t, t.Context(), c, "bank/b")
		ctx, cancel := context.WithCancel(t.Context())
		wait := lockLater(ctx, other, "shop/a")
		synctest.Wait()
		var infos []LockInfo
		for info, err := range c.List(t.Context(), "shop/") {
			if err != nil {
				t.Fatal(err)
			}
			infos = append(infos, info)
		}
		if len(infos) != 1 || len(infos[0].Holders) != 1 || len(infos[0].Waiters) != 1 {
			t.Fatalf("got %+v", infos)
		}
		holder, waiter := infos[0].Holders[0], infos[0].Waiters[0]
		if holder.Client != "here:1" || holder.Label != "nightly" || holder.Token != l.Token() ||
			waiter.Client != "there:2" {
			t.Errorf("got %+v", infos[0])
		}
		if err := c.Break(t.Context(), KindMutex, "shop/a", l.Token()+1000); !errors.Is(err, ErrHeld) {
			t.Errorf("Break with a wrong token: %v", err)
		}
		cancel()
		<-wait
		mustUnlock(t, l)
		mustUnlock(t, b)
	})
}
