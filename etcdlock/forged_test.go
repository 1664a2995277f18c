package etcdlock

import (
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What others write to the keys of a lock, by mistake or in a program of their own, lets nobody in.

// forges writes a key as anybody can.
func (s *stage) forges(by *Driver, key, value string, opts ...clientv3.OpOption) {
	s.t.Helper()
	if _, err := by.client.Put(s.ctx(), key, value, opts...); err != nil {
		s.t.Fatal(err)
	}
}

// waitsOn fails if a wait has ended.
func (s *stage) waitsOn(w *waiting) {
	s.t.Helper()
	select {
	case <-w.done:
		s.t.Fatalf("a waiter is in beside the holder: %+v, %v", w.g, w.err)
	default:
	}
}

// leaves gives up a wait.
func (s *stage) leaves(d *Driver, w *waiting) {
	s.t.Helper()
	if err := d.Release(s.ctx(), &driver.Release{Key: w.r.Key, ID: w.r.ID, Undo: true}); err != nil {
		s.t.Fatal(err)
	}
}

// revisionAs is what has created the key of a request of d.
func revisionAs(d *Driver, r *driver.Request) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[holdID{r.Key, r.ID}].revision
}

// Only the release of a hold says that it was one: in the transaction that deletes its queue key.
func TestServed_WrittenByAnybodyElse_LetsNobodyIn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, c := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(),
		time.Minute)
	held := s.ask("lock")
	s.take(held, a)
	first := s.waits(b, s.ask("lock"))
	second := s.waits(c, s.ask("lock"))
	s.watches(c, placeAs(b, first.r))
	s.forges(a, b.names.served(b.current.id), strconv.FormatInt(revisionAs(b, first.r), 10))
	s.leaves(b, first)
	s.soon("who is behind to look at the queue", func() bool {
		select {
		case <-second.done:
			return true
		default:
			return watchesNow(c, placeAs(a, held))
		}
	})
	s.waitsOn(second)
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	s.ends(second, rulesPatience)
	if second.err != nil {
		t.Fatal(second.err)
	}
}

// watchesNow reports whether d watches the key.
func watchesNow(d *Driver, key string) bool {
	d.listener.mu.Lock()
	defer d.listener.mu.Unlock()
	for _, w := range d.listener.watches {
		if w.key == key {
			return true
		}
	}
	return false
}

// Writes to the keys of holder and waiters, of every kind of lock, let nobody in, and keep nobody out. Nor does a
// compaction.
func TestWrite_ToTheKeysOfALock_LetsNobodyIn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, kind := range []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore} {
		a, b, c := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(),
			time.Minute)
		ask := func() *driver.Request {
			r := s.ask("lock")
			if r.Kind = kind; kind == driver.KindSemaphore {
				r.Mode, r.Limit = driver.Shared, 1
			}
			return r
		}
		held := ask()
		s.take(held, a)
		first := s.waits(b, ask())
		second := s.waits(c, ask())
		for _, of := range []struct {
			d *Driver
			r *driver.Request
		}{{b, first.r}, {c, second.r}, {a, held}} {
			for range 3 { // as it is, and with another lease, as one who writes it back does
				key := placeAs(of.d, of.r)
				found, err := a.client.Get(s.ctx(), key)
				if err != nil || len(found.Kvs) != 1 {
					t.Fatal(found, err)
				}
				s.forges(a, key, string(found.Kvs[0].Value))
			}
		}
		now, err := a.client.Get(s.ctx(), "now")
		if err == nil {
			_, err = a.client.Compact(s.ctx(), now.Header.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.hears(c)
		s.waitsOn(first)
		s.waitsOn(second)
		for _, on := range []struct {
			d *Driver
			r *driver.Request
			w *waiting
		}{{a, held, first}, {b, first.r, second}} {
			if err := s.release(on.d, on.r); err != nil {
				t.Fatal(err)
			}
			s.ends(on.w, rulesPatience)
			if on.w.err != nil {
				t.Fatal(on.w.err)
			}
		}
		if err := s.release(c, second.r); err != nil {
			t.Fatal(err)
		}
	}
}

// hears returns when d has heard of all that was written before.
func (s *stage) hears(d *Driver) {
	s.t.Helper()
	key := d.names.presence(d.current.id) + "heard"
	before := d.listener.wakes.Load()
	s.forges(d, key, "")
	s.soon("the watch to tell", func() bool { return d.listener.wakes.Load() > before })
}

// A notice that a hold was broken counts only if its key is gone, as it is after a break: else nobody would have the
// lock, and it would not be free.
func TestNotice_OfAHoldThatIsThere_EndsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	held := s.ask("lock")
	lost := make(chan driver.LostReason, 1)
	held.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	s.take(held, a)
	w := s.waits(b, s.ask("lock"))
	notice := a.names.notice(a.current.id, revisionAs(a, held))
	s.forges(b, notice, "")
	s.soon("the notice to be taken away", func() bool {
		found, err := b.client.Get(s.ctx(), notice)
		return err == nil && len(found.Kvs) == 0
	})
	select {
	case reason := <-lost:
		t.Fatalf("it was told that its hold is %s, and has it", reason)
	default:
	}
	s.waitsOn(w)
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if w.err != nil {
		t.Fatal(w.err)
	}
}
