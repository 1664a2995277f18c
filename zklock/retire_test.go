package zklock

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// forbidRemovals takes the right to remove requests of a lock from everybody, and allow gives it back.
func (a *admin) forbidRemovals(lock string) {
	a.t.Helper()
	if _, err := a.SetACL(lock, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1); err != nil {
		a.t.Fatal(err)
	}
}

func (a *admin) allow(lock string) {
	a.t.Helper()
	if _, err := a.SetACL(lock, zk.WorldACL(zk.PermAll), -1); err != nil {
		a.t.Fatal(err)
	}
}

// saysNo fails unless err is a refusal by the servers.
func saysNo(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, driver.ErrRefused) || !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("%s says %v, want a refusal", what, err)
	}
}

// sessionOf returns the present session.
func sessionOf(d *Driver) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}

// A lock whose release is refused must not stay closed for as long as its client lives. The client's session ends, and
// whoever still has a hold of it is told.
func TestRelease_ThatIsRefused_EndsTheSessionInTheEnd(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a, d := newAdmin(t, n.Addr()), open(t, []string{n.Addr()}, &Options{Root: root, Timeout: faultLease})
	r, other := request("lock"), request("other")
	lost := make(chan driver.LostReason, 1)
	other.Lost = func(reason driver.LostReason, cause error) {
		if !errors.Is(cause, zk.ErrNoAuth) {
			t.Errorf("the cause of the loss is %v", cause)
		}
		lost <- reason
	}
	take(t, d, r)
	take(t, d, other)
	s := sessionOf(d)
	a.forbidRemovals(root + "/mutex/lock")
	next := queue(t, open(t, []string{n.Addr()}, &Options{Root: root}), request("lock"))
	saysNo(t, "the release", d.Release(bounded(t), release(r)))
	saysNo(t, "the release once more", d.Release(bounded(t), release(r)))
	// It grants nothing any more, and says why to those who do not wait for the next one.
	if _, err := d.Acquire(short(t), request("third")); s.endedBy() == nil {
		saysNo(t, "an Acquire", err)
	}
	third := request("third")
	take(t, d, third)
	if now := sessionOf(d); now == s {
		t.Error("the session that retires has granted a lock")
	}
	if reason := receive(t, "the loss of the hold that was left", lost); reason != driver.LostSession {
		t.Errorf("the reason is %s", reason)
	}
	next.granted(t, "the lock whose release was refused")
	give(t, d, third)
	if err := d.Release(bounded(t), release(r)); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the release after that says %v", err)
	}
	a.allow(root + "/mutex/lock")
}

// So with a wait that cannot be taken back: it is in the way of those behind it.
func TestUndo_ThatIsRefused_EndsTheSessionInTheEnd(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	holder, d := open(t, []string{n.Addr()}, &Options{Root: root}), open(t, []string{n.Addr()}, &Options{
		Root: root, Timeout: faultLease,
	})
	r := request("lock")
	take(t, holder, r)
	w := queue(t, d, request("lock"))
	next := queue(t, holder, request("lock"))
	a.forbidRemovals(root + "/mutex/lock")
	saysNo(t, "the undo", d.Release(bounded(t), &driver.Release{Key: w.r.Key, ID: w.r.ID, Undo: true}))
	a.allow(root + "/mutex/lock") // for the holder; nobody asks for the undo again
	give(t, holder, r)
	next.granted(t, "who stands behind a wait that nobody has")
	give(t, holder, next.r)
	again := request("lock")
	take(t, d, again)
	give(t, d, again)
}

// A cause that is mended in time costs nothing. So does the node of a hold that an operator has written to.
func TestRelease_ThatIsRefusedForAWhile_KeepsTheSession(t *testing.T) {
	t.Parallel()
	n, root := servers.ZooKeeperServer(t, nil), freshRoot()
	a, d := newAdmin(t, n.Addr()), open(t, []string{n.Addr()}, &Options{Root: root, Timeout: 20 * faultLease})
	r, written, other := request("lock"), request("written"), request("other")
	lost := make(chan driver.LostReason, 1)
	written.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	for _, r := range []*driver.Request{r, written, other} {
		take(t, d, r)
	}
	s := sessionOf(d)
	a.forbidRemovals(root + "/mutex/lock")
	a.forbidRemovals(root + "/mutex/written")
	saysNo(t, "the release", d.Release(bounded(t), release(r)))
	for _, name := range a.nodes(root + "/mutex/written") {
		if _, err := a.Set(root+"/mutex/written/"+name, nil, -1); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, "the loss of the hold that was written to", lost)
	refused := func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return s.refused.Err()
	}
	a.allow(root + "/mutex/lock")
	give(t, d, r)
	soon(t, "the node that was written to to be refused", func() bool { return refused() != nil })
	a.allow(root + "/mutex/written")
	soon(t, "nothing to be refused any more", func() bool { return refused() == nil })
	if sessionOf(d) != s {
		t.Error("the session has ended")
	}
	give(t, d, other)
}

// Who asks while a session grants nothing goes on in it as soon as it grants again.
func TestAcquire_WhileAReleaseIsRefused_GoesOnWhenTheServerHearsIt(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a, d := newAdmin(t, n.Addr()), open(t, []string{n.Addr()}, &Options{Root: root, Timeout: 20 * faultLease})
	r, other, later := request("lock"), request("other"), request("later")
	take(t, d, r)
	take(t, d, other)
	s := sessionOf(d)
	holder := open(t, []string{n.Addr()}, &Options{Root: root})
	take(t, holder, later)
	w := queue(t, d, request("later"))
	a.forbidRemovals(root + "/mutex/lock")
	saysNo(t, "the release", d.Release(bounded(t), release(r)))
	give(t, holder, later)
	next := begin(bounded(t), d, request("new"))
	soon(t, "the request to come", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.entries[next.r.ID] != nil && d.woken > 0
	})
	for _, w := range []*waiting{w, next} {
		select {
		case got := <-w.done:
			t.Errorf("a session whose release is refused answers %q: %+v", w.r.Name, got)
		default:
		}
	}
	a.allow(root + "/mutex/lock")
	give(t, d, r)
	next.granted(t, "a new request")
	w.granted(t, "one that had its turn meanwhile")
	if sessionOf(d) != s {
		t.Error("the session has ended")
	}
	for _, r := range []*driver.Request{other, w.r, next.r} {
		give(t, d, r)
	}
}
