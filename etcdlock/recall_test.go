package etcdlock

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// retains is ask by a client that may retain the lock, and counts how often it is told that another wants it.
func (s *stage) retains(name string) (*driver.Request, *atomic.Int64) {
	told := new(atomic.Int64)
	r := s.ask(name)
	r.Retains, r.Wanted = true, func() { told.Add(1) }
	return r, told
}

// calls returns the calls that are on the server.
func (s *stage) calls(d *Driver) (all []string) {
	s.t.Helper()
	found, err := d.client.Get(s.ctx(), d.names.prefix+"session/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if strings.Contains(string(kv.Key), "/wanted/") {
			all = append(all, string(kv.Key))
		}
	}
	return all
}

// silent is the timeout of a session that gives no sign of life while these tests run, so what it is told comes by its
// watch.
const silent = 5 * time.Minute

func TestCall_IsAnsweredByTheRelease(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), silent)
	r, told := s.retains("lock")
	s.take(r, a)
	w := s.waits(b, s.ask("lock"))
	s.soon("the holder to be told", func() bool { return told.Load() > 0 })
	if n := len(s.calls(a)); n != 1 {
		t.Errorf("%d calls, want one", n)
	}
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if left := s.calls(a); len(left) > 0 {
		t.Errorf("the release has left %v", left)
	}
}

// Each call is a write, and one is enough for a line of any length.
func TestCall_IsMadeByTheFirstInTheLineAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, c := s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), silent)
	r, told := s.retains("lock")
	s.take(r, a)
	s.waits(b, s.ask("lock"))
	s.soon("the holder to be told", func() bool { return told.Load() > 0 })
	s.waits(c, s.ask("lock"))
	s.watched(c, 1)
	<-time.After(300 * time.Millisecond) // a call would be there by now
	if n := told.Load(); n != 1 {
		t.Errorf("the holder was told %d times, want once", n)
	}
}

// The holder's client may learn of the call before it learns that it has the lock.
func TestCall_ThatComesBeforeTheGrant_IsTakenIn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), silent)
	first := s.ask("lock")
	s.take(first, b)
	r, told := s.retains("lock")
	w := s.waits(a, r)
	later := &queueKey{key: placeAs(a, r), revision: revisionAs(a, r), session: a.current.id}
	if err := b.call(s.ctx(), later); err != nil {
		t.Fatal(err)
	}
	s.soon("the session to know the call", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.current.calls[later.revision] != 0
	})
	a.current.readNotices(s.ctx()) // which finds a call for nothing that is held
	if n := told.Load(); n != 0 {
		t.Errorf("told %d times before the grant", n)
	}
	if err := s.release(b, first); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times with the grant, want once", n)
	}
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
	if left := s.calls(a); len(left) > 0 {
		t.Errorf("the release has left %v", left)
	}
}

// A call that the holder has not seen when it gives the lock back is not left behind.
func TestCall_ForWhatIsOver_IsDeleted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), silent)
	r, told := s.retains("lock")
	s.take(r, a)
	place, revision := placeAs(a, r), revisionAs(a, r)
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
	s.forges(a, a.names.call(a.current.id, revision), place, clientv3.WithLease(a.current.id))
	s.soon("the session to know the call", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.current.calls[revision] != 0
	})
	found, err := a.current.readPresence(s.ctx())
	if err != nil {
		t.Fatal(err)
	}
	a.current.check(found)
	s.soon("the call to be deleted", func() bool { return len(s.calls(a)) == 0 })
	s.soon("the session to forget it", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.current.calls) == 0
	})
	if n := told.Load(); n != 0 {
		t.Errorf("told %d times after the release", n)
	}
}

// What was read of the calls may be older than a call that came meanwhile.
func TestCall_ThatComesWhileTheCallsAreRead_IsNotForgotten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), silent)
	const hold, called = 1000, 1001
	a.current.noticeCall(hold, called)
	for asOf, want := range map[int64]int64{called - 1: called, called: 0} {
		a.current.noticeCall(hold, called)
		a.current.noticeCalls(s.ctx(), nil, asOf)
		a.mu.Lock()
		if got := a.current.calls[hold]; got != want {
			t.Errorf("after a read as of %d the call of %d is %d, want %d", asOf, called, got, want)
		}
		a.mu.Unlock()
	}
}

// A call puts nothing for a hold that is over, of a session that lives or of one that does not.
func TestCall_OfAHolderThatHasLeft_IsNoErrorAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), silent)
	r, _ := s.retains("lock")
	s.take(r, a)
	over := &queueKey{key: placeAs(a, r), revision: revisionAs(a, r), session: a.current.id}
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
	if err := b.call(s.ctx(), over); err != nil {
		t.Error(err)
	}
	if left := s.calls(b); len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
	r, _ = s.retains("lock")
	s.take(r, a)
	gone := &queueKey{key: placeAs(a, r), revision: revisionAs(a, r), session: 1}
	if err := b.call(s.ctx(), gone); err != nil {
		t.Error(err)
	}
}

// Whatever becomes of the watch, a call is a key that is read with each sign of life, for as long as it is there.
func TestCall_IsHeardAgainWithEachSignOfLife(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), 3*time.Second), s.opens(s.node.Addr(), silent)
	r, told := s.retains("lock")
	s.take(r, a)
	s.waits(b, s.ask("lock"))
	s.soon("the holder to be told three times", func() bool { return told.Load() >= 3 })
}

// A call that comes while the watch is down is found when the session watches anew, and not with the next sign of life.
func TestCall_WhileTheWatchIsDown_IsFoundByTheNextOne(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := servers.NewProxy(t, s.node.Addr())
	a, b := s.opens(p.Addr(), silent), s.opens(s.node.Addr(), silent)
	r, told := s.retains("lock")
	s.take(r, a)
	s.watched(a, 0)
	p.Refuse()
	p.Reset()
	s.waits(b, s.ask("lock"))
	s.soon("the call", func() bool { return len(s.calls(b)) > 0 })
	if n := told.Load(); n != 0 {
		t.Fatalf("told %d times through a proxy that lets nothing through", n)
	}
	p.Pass()
	s.soon("the holder to be told", func() bool { return told.Load() > 0 })
}

// Without Retains nothing is written until the wait has lasted for a while.
func TestCall_OfAHolderThatOnlyListens_ComesWithTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), 6*time.Second)
	r, told := s.retains("lock")
	r.Retains = false
	s.take(r, a)
	begun := time.Now()
	s.waits(b, s.ask("lock"))
	s.soon("the holder to be told", func() bool { return told.Load() > 0 })
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("told after %v, and the wait has to last for a third of 6 s", took)
	}
	if err := s.release(a, r); err != nil {
		t.Fatal(err)
	}
	s.soon("no call to be left", func() bool { return len(s.calls(a)) == 0 })
}

// Earlier versions take no calls in, and would not delete them.
func TestCall_IsNotMadeOfAHolderThatDoesNotListen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), silent), s.opens(s.node.Addr(), 3*time.Second)
	s.take(s.ask("lock"), a)
	w := s.waits(b, s.ask("lock"))
	select {
	case <-w.done:
		t.Fatalf("two are in: %+v, %v", w.g, w.err)
	case <-time.After(1500 * time.Millisecond): // a third of 3 s, and some more
	}
	if made := s.calls(a); len(made) > 0 {
		t.Errorf("there is %v", made)
	}
}
