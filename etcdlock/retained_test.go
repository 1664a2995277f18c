package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// renews asks for one renewal each of rs, after so many passes.
func (s *stage) renews(d *Driver, pass int, retained bool, rs ...*driver.Request) []error {
	batch, errs := make([]driver.Renewal, len(rs)), make([]error, len(rs))
	for i, r := range rs {
		batch[i] = driver.Renewal{Key: r.Key, ID: r.ID, Pass: pass, Retained: retained}
		if !retained {
			batch[i].Owner = "the owner of the pass"
		}
		errs[i] = errors.New("done was not called")
	}
	d.Renew(s.ctx(), batch, func(i int, err error) { errs[i] = err })
	return errs
}

// mustRenew fails unless all renewals succeed.
func (s *stage) mustRenew(d *Driver, pass int, retained bool, rs ...*driver.Request) {
	s.t.Helper()
	for i, err := range s.renews(d, pass, retained, rs...) {
		if err != nil {
			s.t.Fatalf("renewal %d: %v", i, err)
		}
	}
}

// shows fails unless the lock is shown as retained, or as held.
func (s *stage) shows(d *Driver, key driver.Key, retained bool, when string) {
	s.t.Helper()
	info, err := d.Look(s.ctx(), key)
	if err != nil || len(info.Holders) != 1 {
		s.t.Fatalf("%s: %+v, %v", when, info, err)
	}
	if h := info.Holders[0]; h.Retained != retained || retained != (h.Owner == "") {
		s.t.Errorf("%s it is shown as %+v, want Retained %v", when, h, retained)
	}
}

// revision is what the server is at.
func (s *stage) revision(d *Driver) int64 {
	s.t.Helper()
	found, err := d.client.Get(s.ctx(), "nothing")
	if err != nil {
		s.t.Fatal(err)
	}
	return found.Header.Revision
}

func TestRenew_OfManyHolds_CostsOneWriteFor32(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	var rs []*driver.Request
	for i := range 100 {
		r, _ := s.retains(fmt.Sprint("lock ", i))
		s.take(r, a)
		rs = append(rs, r)
	}
	before := s.revision(a)
	s.mustRenew(a, 0, true, rs...)
	const want = 4 // 32, 32, 32 and 4
	if n := s.revision(a) - before; n != want {
		t.Errorf("%d writes, want %d", n, want)
	}
	for _, r := range rs {
		s.shows(a, r.Key, true, "after the renewal")
	}
	before = s.revision(a)
	s.mustRenew(a, 0, true, rs...)
	if n := s.revision(a) - before; n != 0 {
		t.Errorf("%d writes of what is shown already", n)
	}
}

func TestRenew_ThatIsLate_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	r, _ := s.retains("lock")
	r.Tokens = 8
	s.take(r, a)
	s.mustRenew(a, 0, true, r)
	s.mustRenew(a, 1, false, r)
	s.mustRenew(a, 0, true, r)
	s.shows(a, r.Key, false, "after a late renewal of what was retained before")
	s.mustRenew(a, 1, true, r)
	s.mustRenew(a, 1, false, r)
	s.shows(a, r.Key, true, "after a late renewal of what was held before")
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
}

// Two renewals are under way at once when a retained lock is taken over meanwhile. What is shown in the end is the
// later one.
func TestRenew_OfALaterPassAtTheSameTime_Wins(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	r, _ := s.retains("lock")
	s.take(r, a)
	for pass := range 30 {
		said := make(chan error)
		go func() { said <- s.renews(a, pass, true, r)[0] }()
		s.mustRenew(a, pass+1, false, r)
		if err := <-said; err != nil {
			t.Fatal(err)
		}
		s.shows(a, r.Key, false, fmt.Sprintf("after pass %d", pass+1))
	}
}

// The answer to an earlier attempt may have been lost, so what is on the server is not what the driver believes.
func TestRenew_OfAKeyThatWasWrittenMeanwhile_SucceedsAllTheSame(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	r, _ := s.retains("lock")
	s.take(r, a)
	for retained, pass := range map[bool]int{true: 1, false: 2} {
		s.forges(a, placeAs(a, r), recordOf(r).text(), clientv3.WithLease(a.current.id))
		s.mustRenew(a, pass, retained, r)
	}
	s.mustRenew(a, 3, true, r)
	s.shows(a, r.Key, true, "after the renewal")
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
}

// What is written late must not bring a key back, nor change that of another request in its place.
func TestRenew_ThatArrivesLate_WritesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	r, _ := s.retains("lock")
	s.take(r, a)
	late := &renewing{r: &driver.Renewal{Key: r.Key, ID: r.ID, Retained: true}}
	if !late.prepare(a) || !late.puts {
		t.Fatal("nothing is to be written")
	}
	ops := late.ops()
	s.mustRenew(a, 1, false, r)
	s.sends(a, ops)
	s.shows(a, r.Key, false, "after a late write")
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
	s.sends(a, ops)
	if found, err := a.queue(s.ctx(), r.Key); err != nil || len(found) > 0 {
		t.Fatalf("after the release a late write has left %v, %v", found, err)
	}
	next, _ := s.retains("lock")
	s.take(next, a)
	if placeAs(a, next) != late.e.queueKey {
		t.Fatal("the place is not used again, so this shows nothing")
	}
	s.sends(a, ops)
	s.shows(a, r.Key, false, "after a late write")
	if err := s.renews(a, 0, true, r)[0]; !errors.Is(err, driver.ErrLost) {
		t.Errorf("a renewal after the release says %v", err)
	}
}

// sends sends a transaction.
func (s *stage) sends(d *Driver, ops []clientv3.Op) {
	s.t.Helper()
	if _, _, err := d.commit(s.ctx(), &transaction{then: ops}); err != nil {
		s.t.Fatal(err)
	}
}

// An operator may have deleted the key. Whoever retains the lock has to give it up then, as who holds it.
func TestRenew_OfAKeyThatIsGone_SaysLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	for _, broken := range []bool{false, true} {
		r, _ := s.retains("lock")
		reasons := make(chan driver.LostReason, 1)
		r.Lost = func(reason driver.LostReason, _ error) { reasons <- reason }
		g := s.take(r, a)
		other, _ := s.retains("other")
		s.take(other, a)
		want := driver.LostTaken
		if broken {
			want = driver.LostBroken
			if err := a.Break(s.ctx(), r.Key, g.Token); err != nil {
				t.Fatal(err)
			}
		} else if _, err := a.client.Delete(s.ctx(), placeAs(a, r)); err != nil {
			t.Fatal(err)
		}
		errs := s.renews(a, 0, true, r, other)
		var lost *driver.LostError
		if !errors.As(errs[0], &lost) || lost.Reason != want || errs[1] != nil {
			t.Errorf("the renewals say %v, want %s and nothing of the other", errs, want)
		}
		if reason := <-reasons; reason != want {
			t.Errorf("told %s, want %s", reason, want)
		}
		if err := s.release(a, other); err != nil {
			t.Fatal(err)
		}
	}
}

// Others may have a version that does not call.
func TestRenew_TellsOfAWaiterOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	r, told := s.retains("lock")
	s.take(r, a)
	s.mustRenew(a, 0, true, r)
	s.forges(b, b.names.queueKey(r, b.current.id, 0), `{"v":1,"id":"old","mode":"x","tokens":1}`,
		clientv3.WithLease(b.current.id))
	if n := told.Load(); n != 0 {
		t.Fatalf("told %d times of nobody", n)
	}
	s.mustRenew(a, 0, true, r)
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

func TestRenew_WithoutAServer_SaysSoInTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	r, _ := s.retains("lock")
	s.take(r, a)
	s.node.Stop()
	defer s.node.Cont()
	ctx, cancel := context.WithTimeout(s.ctx(), 100*time.Millisecond)
	defer cancel()
	a.Renew(ctx, []driver.Renewal{{Key: r.Key, ID: r.ID, Retained: true}}, func(_ int, err error) {
		if err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("a server that hangs says %v", err)
		}
	})
	if ctx.Err() == nil {
		t.Error("it did not wait for an answer")
	}
}
