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
func TestConfirmed_IsWhenTheLastProvedRequestWasSent(t *testing.T) {
	t.Parallel()
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: freshRoot(), Timeout: 20 * time.Second})
	r := request("lock")
	g := take(t, d, r)
	l, err := d.ready(bounded(t), nil, reach, false)
	if err != nil {
		t.Fatal(err)
	}
	p.Delay(servers.BothWays, 50*time.Millisecond)
	before := time.Now()
	if err := l.prove(bounded(t)); err != nil {
		t.Fatal(err)
	}
	confirmed := g.Session.Confirmed()
	// The transaction was sent a round trip before it was answered.
	if age := time.Since(confirmed); confirmed.Before(before) || age < 100*time.Millisecond+reportLag(g.Lease) {
		t.Errorf("%v after a proof was begun the session counts as confirmed %v ago", time.Since(before), age)
	}
	p.BlackHole(servers.ToClient)
	ctx := short(t)
	if err := d.Release(ctx, release(r)); err == nil {
		t.Error("a release was answered by nobody")
	}
	if now := g.Session.Confirmed(); now != confirmed {
		t.Errorf("a request that was not answered confirms the session: %v after %v", now, confirmed)
	}
	p.Pass()
}

// A transaction proves that the leader knows of a request that was sent some time before, and of no later one. A read
// proves nothing: one server answers it.
func TestHeard_ConfirmsWhatTheLeaderMustKnow(t *testing.T) {
	t.Parallel()
	const lag = time.Second // of a timeout of 4 s
	born := time.Now()
	s := &session{d: &Driver{born: born}, timeout: 4 * lag}
	l := &link{s: s}
	for i, step := range []struct {
		sent      time.Duration
		agreed    bool
		confirmed time.Duration
	}{
		{1 * lag, false, 0},
		{1*lag + 1, true, 0}, // the leader may not know of the first yet
		{2*lag - 1, true, 0},
		{3 * lag, false, 0}, // a read
		{2 * lag, true, 1 * lag},
		{3*lag - 1, true, 1 * lag}, // of the last transaction it may not know yet
		{3 * lag, true, 2 * lag},
		{9 * lag, true, 3 * lag},
	} {
		l.heard(born.Add(step.sent), step.agreed)
		if got := s.Confirmed().Sub(born); got != step.confirmed {
			t.Errorf("step %d: confirmed at %v, want %v", i, got, step.confirmed)
		}
	}
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
