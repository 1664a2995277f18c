package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// A message that the lock is free is no grant when the session may have ended since it was sent: a process that stood
// still finds it, although others have the lock by now. So the servers are asked first.
func TestWakeUp_OfASessionThatIsNotConfirmed_IsNoGrant(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	holder := open(t, []string{n.Addr()}, &Options{Root: root})
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: 20 * time.Second})
	r := request("lock")
	take(t, holder, r)
	w := queue(t, d, request("lock"))

	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	p.BlackHole(servers.ToServer) // what the server says arrives, what it is asked does not
	s.confirmed.Store(s.confirmed.Load() - int64(s.timeout))
	give(t, holder, r)
	soon(t, "the message that the lock is free", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.woken == 1
	})
	select {
	case got := <-w.done:
		t.Fatalf("it was granted without a question: %+v", got)
	case <-time.After(100 * time.Millisecond):
	}
	p.Pass()
	g := w.granted(t, "the session was confirmed")
	if age := time.Since(g.Session.Confirmed()); age > g.Lease {
		t.Errorf("the grant is of a session that was confirmed %v ago", age)
	}
	give(t, d, w.r)
}

// The trust in a hold ends before the servers may end the session, whatever was answered last.
func TestConfirmed_IsWhenTheLastAnsweredRequestWasSent(t *testing.T) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: freshRoot(), Timeout: 20 * time.Second})
	r := request("lock")
	p.Delay(servers.BothWays, 50*time.Millisecond)
	before := time.Now()
	g := take(t, d, r)
	took := time.Since(before)
	// Making the lock's node takes more than one request; the last was sent a round trip before it was answered.
	if lag := time.Since(g.Session.Confirmed()); lag < 100*time.Millisecond+reportLag(g.Lease) {
		t.Errorf("%v after an acquire that took %v the session counts as confirmed %v ago", time.Since(before), took,
			lag)
	}
	p.BlackHole(servers.ToClient)
	confirmed := g.Session.Confirmed()
	ctx := short(t)
	if err := d.Release(ctx, release(r)); err == nil {
		t.Error("a release was answered by nobody")
	}
	if now := g.Session.Confirmed(); now != confirmed {
		t.Errorf("a request that was not answered confirms the session: %v after %v", now, confirmed)
	}
	p.Pass()
}

// The end of a session is told for each of its holds, and the next session is another.
func TestSessionEnd_IsToldForEachHold(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: faultLease})
	lost := make(chan driver.LostReason, 8)
	var all []*driver.Request
	for _, name := range []string{"a", "b", "c"} {
		r := request(name)
		r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
		take(t, d, r)
		all = append(all, r)
	}
	p.BlackHole(servers.BothWays)
	soon(t, "the servers to end the session", func() bool { return len(a.nodes(root+"/sessions")) == 0 })
	select {
	case reason := <-lost:
		t.Fatalf("nobody has said so, and the holds count as lost: %s", reason)
	default: // the session is suspended, and nobody knows more
	}
	p.Pass()
	for range all {
		if reason := receive(t, "the loss of a hold", lost); reason != driver.LostSession {
			t.Errorf("the reason is %s", reason)
		}
	}
	for _, r := range all {
		if err := d.Release(bounded(t), release(r)); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the release of a lost hold says %v", err)
		}
		if _, err := d.Acquire(bounded(t), r); !errors.Is(err, driver.ErrLost) {
			t.Errorf("the same request again says %v", err)
		}
		again := request(r.Name)
		take(t, d, again)
		give(t, d, again)
	}
}
