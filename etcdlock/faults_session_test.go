package etcdlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// directions are the ways in which a cable can be cut.
var directions = map[string]servers.Direction{
	"BothWays": servers.BothWays, "RequestsOnly": servers.ToServer, "RepliesOnly": servers.ToClient,
}

// When the next owner's Lock returns, the holder has been told in every way that there is.
func TestBlackHole_BeforeTheHolder_ItIsOutBeforeTheNextIsIn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	for name, direction := range directions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.OnceInTime(t, 3, func(try int) string {
				return blackHole(t, s, direction, fmt.Sprint(t.Name(), " ", try))
			})
		})
	}
}

// blackHole returns what the holder had not been told when the next was in.
func blackHole(t *testing.T, s *servers.EtcdNode, direction servers.Direction, name string) (late string) {
	proxy := servers.NewProxy(t, s.Addr())
	watch := newNews()
	holder := openLocks(t, etcdURL(proxy.Addr()), &interlock.Options{Lease: brief, CloseTimeout: time.Millisecond})
	defer holder.Close()
	next := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm, Observer: watch.Observer()})
	defer next.Close()
	held := mustLock(t, holder, name)
	lateness := locktest.WatchEnd(t, held)
	in := locking(t, next, name)
	receive(t, "the waiter to be queued", watch.Queued)
	proxy.BlackHole(direction)

	l := receive(t, "the next to get in", in)
	late = lateness(l)
	var why *interlock.LostError
	if !errors.As(held.Err(), &why) || why.Reason != "unconfirmed" && why.Reason != "session" {
		t.Errorf("the holder has lost it by %v", held.Err())
	}
	proxy.Pass() // what was held up arrives now
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, holder, name)) // with a session of its own again
	return late
}

// A server that stands still for longer than the session: nobody can be in twice, and everything goes on afterwards.
func TestServerStopped_ForLongerThanTheSession_HoldsAreLostAndClientsGoOn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	a := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: brief})
	watch := newNews()
	b := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: brief, Observer: watch.Observer()})
	held := mustLock(t, a, "lock")
	in := locking(t, b, "lock")
	receive(t, "the waiter to be queued", watch.Queued)
	over := alarm(brief)
	s.Stop()
	receive(t, "the holder to be told", held.Lost())
	told := time.Now()
	if late := told.Sub(<-over); late > time.Second {
		t.Errorf("the holder was told %v after the end of its session", late)
	}
	<-time.After(brief / 2) // the waiter's session is over as well
	s.Cont()
	l := receive(t, "the waiter to get in", in)
	if l.Token() <= held.Token() {
		t.Errorf("token %d after %d", l.Token(), held.Token())
	}
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, a, "lock"))
	noneLeft(t, s)
}

// An operator who revokes a lease ends the session: it is told at once, not with the next sign of life.
func TestLeaseRevoked_IsToldAtOnce_AndClientsGoOn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	watch := newNews()
	o := &interlock.Options{Lease: calm, Observer: watch.Observer()}
	a, b := openLocks(t, etcdURL(s.Addr()), o), openLocks(t, etcdURL(s.Addr()), o)
	held := mustLock(t, a, "lock")
	in := locking(t, b, "lock")
	receive(t, "the waiter to be queued", watch.Queued)
	places := sessions(t, s, "interlock/mutex/lock/")
	do(t, s, "lease/revoke", map[string]any{"ID": places[1]}) // of the waiter, whose queue key is gone then
	if !within(faultsPatience, func() bool {
		now := sessions(t, s, "interlock/mutex/lock/")
		return len(now) == 2 && now[1] != places[1]
	}) {
		t.Fatal("the waiter has not come again")
	}
	begin := time.Now()
	do(t, s, "lease/revoke", map[string]any{"ID": places[0]})
	receive(t, "the holder to be told", held.Lost())
	if took := time.Since(begin); took > calm/4 {
		t.Errorf("the holder was told after %v; the next sign of life would have come after %v", took, calm/3)
	}
	var why *interlock.LostError
	if !errors.As(held.Err(), &why) || why.Reason != "session" {
		t.Errorf("the hold was lost by %v, want its session", held.Err())
	}
	l := receive(t, "the waiter to get in", in)
	if l.Token() <= held.Token() {
		t.Errorf("token %d after %d", l.Token(), held.Token())
	}
	mustUnlock(t, l)
	if err := held.Unlock(patient(t)); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock of the lost hold says %v", err)
	}
	mustUnlock(t, mustLock(t, a, "lock"))
	noneLeft(t, s)
}

// A key that an operator deletes is missed with a sign of life.
func TestKeyDeleted_IsToldWithASignOfLife(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	a := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: 6 * time.Second})
	held, other := mustLock(t, a, "lock"), mustLock(t, a, "other")
	<-time.After(3 * time.Second) // the keys are looked for every five seconds at most
	for _, key := range keys(t, s, "interlock/mutex/lock/") {
		do(t, s, "kv/deleterange", map[string]any{"key": b64(key)})
	}
	receive(t, "the holder to be told", held.Lost())
	var why *interlock.LostError
	if !errors.As(held.Err(), &why) || why.Reason != "taken" {
		t.Errorf("the hold was lost by %v, want that somebody else may have it", held.Err())
	}
	if other.Err() != nil {
		t.Errorf("the other hold of the session: %v", other.Err())
	}
	mustUnlock(t, other)
}
