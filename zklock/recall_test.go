package zklock

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// listener counts how often a holder was told that another wants its lock.
type listener struct{ told atomic.Int64 }

// retaining asks for a mutex that may be retained.
func retaining(name string) (*driver.Request, *listener) {
	l := new(listener)
	r := request(name)
	r.Tokens, r.Retains = 4, true
	r.Wanted = func() { l.told.Add(1) }
	return r, l
}

// isTold returns when the holder was told more often than before.
func (l *listener) isTold(t testing.TB, before int64, when string) {
	t.Helper()
	soon(t, "the holder to be told "+when, func() bool { return l.told.Load() > before })
}

// isToldNothing fails if the holder is told within a moment.
func (l *listener) isToldNothing(t testing.TB, when string) {
	t.Helper()
	<-time.After(2 * guardAfter)
	if n := l.told.Load(); n > 0 {
		t.Fatalf("%s: the holder was told %d times", when, n)
	}
}

// isRefused fails unless a try of a lock is refused, and leaves nothing.
func isRefused(t testing.TB, d *Driver, name string) *driver.HeldError {
	t.Helper()
	r := request(name)
	r.Try = true
	_, err := d.Acquire(bounded(t), r)
	var held *driver.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("a try of %q says %v, want a *HeldError", name, err)
	}
	return held
}

// listens returns when the server watches the lock for the holder, or is about to.
func listens(t testing.TB, d *Driver, r *driver.Request) {
	t.Helper()
	soon(t, "the holder to listen", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.session.listeners[d.tree.lock(r.Key)] != nil
	})
}

// Each watch tells once, so it is set again each time.
func TestRecall_IsRepeatedForEachWhoAsks(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, other := open(t, []string{n.Addr()}, &Options{Root: root}), open(t, []string{n.Addr()}, &Options{Root: root})
	r, l := retaining("lock")
	take(t, d, r)
	l.isToldNothing(t, "while nobody asks")
	for range 4 {
		before := l.told.Load()
		isRefused(t, other, "lock")
		l.isTold(t, before, "of a further try")
	}
	give(t, d, r)
}

// A try leaves nothing in the queue, so what it has left is a number at the lock's node. It is found by who was away.
func TestRecall_DuringADisconnection_IsNoticedAfterwards(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	other := open(t, []string{n.Addr()}, &Options{Root: root})
	for range 5 {
		p := servers.NewProxy(t, n.Addr())
		d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: 20 * time.Second})
		r, l := retaining("lock")
		take(t, d, r)
		listens(t, d, r)
		p.BlackHole(servers.BothWays)
		isRefused(t, other, "lock")
		p.Reset()
		p.Pass()
		l.isTold(t, 0, "of a try while it was cut off")
		give(t, d, r)
	}
}

// The library sets its watches again after a reconnection, but nothing depends on that: here it does not know of any.
func TestRecall_WhoseWatchTheLibraryHasForgotten_IsNoticedAfterAReconnection(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	other := open(t, []string{n.Addr()}, &Options{Root: root})
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: 20 * time.Second})
	r, l := retaining("lock")
	take(t, d, r)
	listens(t, d, r)
	l.isToldNothing(t, "while nobody asks") // by then the keeper has seen that it listens
	found := swallow(d, r)
	isRefused(t, other, "lock")
	l.isToldNothing(t, "whose message is lost")
	found()
	p.Reset()
	l.isTold(t, 0, "after a reconnection")
	give(t, d, r)
}

// swallow has the messages about the lock of r lost until the returned function is called.
func swallow(d *Driver, r *driver.Request) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, lock := d.session, d.tree.lock(r.Key)
	e := s.listeners[lock]
	delete(s.listeners, lock)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		s.listeners[lock] = e
	}
}

// Clients of earlier versions, and programs that only know wire.md, ask by the same transaction.
func TestRecall_ByATransactionOfWireMD(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, a := open(t, []string{n.Addr()}, &Options{Root: root}), newAdmin(t, n.Addr())
	r, l := retaining("lock")
	take(t, d, r)
	listens(t, d, r)
	lock := root + "/mutex/lock"
	results, err := a.Multi(
		&zk.CreateRequest{
			Path: lock + "/wforeign-", Data: []byte(`{"tokens":1}`), Acl: zk.WorldACL(zk.PermAll),
			Flags: zk.FlagEphemeralSequential,
		},
		&zk.SetDataRequest{Path: lock, Data: nothing, Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	l.isTold(t, 0, "of a request of another program")
	if err := a.Delete(results[0].String, -1); err != nil {
		t.Fatal(err)
	}
	give(t, d, r)
}

// A hold with which nothing is retained is told too, when it has lasted for a while. It is told once, because each
// further message would cost a read.
func TestWanted_OfAPlainHold_IsToldWhenItHasLastedForAWhile(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, other := open(t, []string{n.Addr()}, &Options{Root: root}), open(t, []string{n.Addr()}, &Options{Root: root})
	r, l := retaining("lock")
	r.Retains = false
	take(t, d, r)
	if held := isRefused(t, other, "lock"); held.Retains {
		t.Errorf("the refusal is %+v, and nothing is retained", *held)
	}
	l.isTold(t, 0, "although the try came before it listened")
	before := l.told.Load()
	isRefused(t, other, "lock")
	l.isTold(t, before, "of a further try")
	before = l.told.Load()
	isRefused(t, other, "lock")
	<-time.After(2 * guardAfter)
	if n := l.told.Load(); n != before {
		t.Errorf("it was told %d times more, and watches nothing any more", n-before)
	}
	give(t, d, r)
}

// A lock that many take in turn is not retained, so nobody pays for it: who came after a wait listens only when the
// hold lasts.
func TestGrantAfterAWait_DoesNotListenAtOnce(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, other := open(t, []string{n.Addr()}, &Options{Root: root}), open(t, []string{n.Addr()}, &Options{Root: root})
	first := request("lock")
	take(t, other, first)
	r, l := retaining("lock")
	w := queue(t, d, r)
	give(t, other, first)
	w.granted(t, "the holder has left")
	<-time.After(guardAfter / 3)
	d.mu.Lock()
	listeners, age := len(d.session.listeners), time.Since(d.entries[r.ID].since)
	d.mu.Unlock()
	if listeners != 0 && age < guardAfter {
		t.Errorf("it listens after %v", age)
	}
	isRefused(t, other, "lock")
	l.isTold(t, 0, "after a while")
	give(t, d, r)
}

// What a released hold has left in the server wakes nobody.
func TestRelease_EndsTheListening(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, other := open(t, []string{n.Addr()}, &Options{Root: root}), open(t, []string{n.Addr()}, &Options{Root: root})
	r, l := retaining("lock")
	take(t, d, r)
	listens(t, d, r)
	give(t, d, r)
	next := request("lock")
	take(t, other, next)
	l.isToldNothing(t, "after its release")
	give(t, other, next)
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.session.listeners) + len(d.session.unlistening); n > 0 {
		t.Errorf("%d holds are left that listen", n)
	}
}

// A holder that merely retains the lock leaves as soon as a try has asked, so the try looks again before it says
// "held".
func TestTry_WhoseHolderHasJustLeft_LooksAgain(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, a := open(t, []string{n.Addr()}, &Options{Root: root}), newAdmin(t, n.Addr())
	r := request("lock")
	r.Try = true
	e, err := d.enter(r)
	if err != nil || e.take(bounded(t)) != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	l := d.session.link
	d.mu.Unlock()
	try := &attempt{d: d, e: e, r: r}
	try.join(l.s)
	if alone, err := try.put(bounded(t), l); err != nil || !alone {
		t.Fatalf("alone: %v, %v", alone, err)
	}
	err = try.refuse(bounded(t), l, queuePlace{name: "wleft-0000000000"})
	if left := a.nodes(root + "/mutex/lock"); !errors.Is(err, errAgain) || e.path == "" || len(left) != 1 {
		t.Errorf("it says %v, and the queue is %v", err, left)
	}
	e.give()
	take(t, d, r)
	give(t, d, r)
}
