package etcdlock

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/locktest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A copy of a request may wait for the turn while the request is refused and forgotten. It must not go on with what is
// forgotten: a hold of which the driver does not know could not be renewed.
func TestCopyOfARefusedRequest_IsAHoldThatTheDriverKnows(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := s.opens(s.node.Addr(), time.Minute)
	r := s.ask("lock")
	refused, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := refused.take(s.ctx()); err != nil {
		t.Fatal(err)
	}
	granted := make(chan error, 1)
	go func() { // ends with the context
		_, err := d.Acquire(s.ctx(), r)
		granted <- err
	}()
	locktest.Standing(t, "etcdlock.(*entry).take")
	d.drop(refused)
	refused.yield()
	if err := <-granted; err != nil {
		t.Fatal(err)
	}
	d.Renew(s.ctx(), []driver.Renewal{{Key: r.Key, ID: r.ID}}, func(_ int, err error) {
		if err != nil {
			t.Errorf("renew: %v", err)
		}
	})
	if err := s.release(d, r); err != nil {
		t.Errorf("release: %v", err)
	}
}

// permits is ask for so many of two permits.
func (s *stage) permits(n int) *driver.Request {
	r := s.ask("permits")
	r.Kind, r.Mode, r.Limit, r.Weight = driver.KindSemaphore, driver.Shared, 2, n
	return r
}

// The answer to the first copy of a request is lost while it has to wait. A waiter behind it watches its key until it
// is rewritten. The next copy must rewrite it, although it finds that nothing is in the way by now.
func TestCopyOfAWaiterForPermits_ThatIsGrantedAtOnce_WakesTheNextWaiter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, c := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(),
		time.Minute)
	held, asks := s.permits(2), s.permits(1)
	s.take(held, a)
	key := b.names.queueKey(asks, b.current.id, 0)
	s.forges(a, key, recordOf(asks).text(), clientv3.WithLease(b.current.id)) // as the first copy has
	behind := s.waits(c, s.permits(1))
	s.watches(c, key)
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	s.take(asks, b)
	s.ends(behind, rulesPatience) // without a wake-up it looks again after a minute
	if behind.err != nil {
		t.Fatal(behind.err)
	}
}

// The first Acquire has sent its creation, and its caller has left before the answer. A refusal of the next one with
// the same ID says nothing of that creation, so the caller must undo the request.
func TestAcquire_ThatIsRefusedAfterACreationWithoutAnAnswer_IsNotDefinite(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	s.take(s.permits(1), a)
	asks := s.permits(1)
	asks.Limit++ // another limit is refused for good
	e, err := b.enterTurn(s.ctx(), asks)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	e.open++
	b.mu.Unlock()
	e.yield()
	if _, err := b.Acquire(s.ctx(), asks); err == nil || driver.IsDefinite(err) {
		t.Errorf("the refusal %v counts as the last word", err)
	}
}

// A copy of a release may delete the key before its answer is lost, and an audit then finds no key. That is no proof
// that somebody else has ended the hold, but the notice of a break is.
func TestHold_ThatIsFoundGoneWhileItIsReleased_IsOnlyLostIfItWasBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ found, want driver.LostReason }{
		{driver.LostTaken, driver.LostExpired},
		{driver.LostBroken, driver.LostBroken},
	} {
		told := 0
		e := &entry{
			d: new(Driver), granted: true, released: true,
			r: &driver.Request{Lost: func(driver.LostReason, error) { told++ }},
		}
		e.tellEnded(c.found)
		if reason := e.d.brokenMeanwhile(e, false); reason != c.want || told > 0 != (c.want == driver.LostBroken) {
			t.Errorf("found as %q: the release says %q, and the owner was told %d times", c.found, reason, told)
		}
	}
}
