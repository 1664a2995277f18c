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
	// The transaction was sent a round trip before it was answered, and not before the sign was answered and the pause
	// was over.
	if age := time.Since(confirmed); confirmed.Before(before) || age < 200*time.Millisecond+reportLag(g.Lease) {
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

// Over a connection that stood still, both requests of a proof reach the follower together. The leader need not know of
// the first then, however long before the second it was sent. Another transaction is made, after a pause.
func TestProve_OverAConnectionThatStoodStill_ProvesNothingUntilAfterAnotherPause(t *testing.T) {
	t.Parallel()
	p := servers.NewProxy(t, sharedServer(t).Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: freshRoot(), Timeout: 20 * time.Second})
	l, err := d.ready(bounded(t), nil, reach, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []servers.Direction{servers.ToServer, servers.BothWays} {
		p.BlackHole(way)
		before, proved := time.Now(), make(chan error, 1)
		go func() { proved <- l.prove(bounded(t)) }() // ends with its context
		soon(t, "the transaction to be sent", func() bool {
			return l.s.unanswered.Load() >= 2 && time.Since(before) > reportLag(l.s.timeout)+unevenness(l.s.timeout)
		})
		if since := l.s.Confirmed(); !since.Before(before) {
			t.Fatalf("confirmed since %v after the beginning", since.Sub(before))
		}
		passed := time.Now()
		p.Pass()
		soon(t, "the proof", func() bool { return !l.s.Confirmed().Before(before) })
		if after := time.Since(passed); after < reportLag(l.s.timeout) {
			t.Errorf("proved %v after the requests had arrived together", after)
		}
		if err := receive(t, "the end of the proof", proved); err != nil {
			t.Error(err)
		}
	}
}

// A transaction proves that the leader knows of a request that was answered some time before, and of no later one. A
// read proves nothing: one server answers it.
func TestHeard_ConfirmsWhatTheLeaderMustKnow(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	lag, born := reportLag(timeout), time.Now()
	if lag <= timeout/4 {
		t.Errorf("half a tick of two has no slack: %v", lag)
	}
	s := &session{d: &Driver{born: born}, timeout: timeout}
	l := &link{s: s}
	for i, step := range []struct {
		sent      time.Duration
		took      time.Duration
		agreed    bool
		confirmed time.Duration
	}{
		{1 * lag, 0, false, 0},
		{1*lag + 1, 0, true, 0}, // the leader may not know of the first yet
		{2*lag - 1, 0, true, 0},
		{3 * lag, 0, false, 0}, // a read
		{2 * lag, 0, true, 1 * lag},
		{3*lag - 1, 0, true, 1 * lag}, // of the last transaction it may not know yet
		{3 * lag, 0, true, 2 * lag},
		{9 * lag, lag / 2, true, 3 * lag},
		{10 * lag, 0, true, 3 * lag}, // the follower may have heard of both at once
		{10*lag + lag/2, 0, true, 9 * lag},
	} {
		sent := born.Add(step.sent)
		l.heard(sent, sent.Add(step.took), step.agreed)
		if got := s.Confirmed().Sub(born); got != step.confirmed {
			t.Errorf("step %d: confirmed at %v, want %v", i, got, step.confirmed)
		}
	}
}

// Requests that were sent far enough apart may have arrived together. They have not if the first was answered early
// enough, or if what was sent meanwhile was answered one after the other.
func TestProven_IsTheLatestSignThatCannotHaveArrivedWithTheTransaction(t *testing.T) {
	t.Parallel()
	const timeout, none = 4 * time.Second, -1 // a lag of 1,040 ms
	type request struct{ sent, took int }     // in milliseconds; took is none if it is not answered
	for name, c := range map[string]struct {
		signs       []request
		transaction request
		proven      int // the instant, or none
	}{
		"nothing was sent before": {nil, request{1100, 1}, none},
		"near, after the pause":   {[]request{{10, 1}}, request{1051, 1}, 10},
		"near, before its end":    {[]request{{10, 1}}, request{1050, 1}, none},
		"near, a slow answer":     {[]request{{10, 1}}, request{1051, 2000}, 10},
		"an older one is near":    {[]request{{10, 1}, {500, 1}}, request{1100, 1}, 10},
		"sent later":              {[]request{{10, 1}, {1100, 1}}, request{1051, 1}, 10},

		"stalled":              {[]request{{10, 1500}, {450, 1060}, {900, 610}}, request{1100, 410}, none},
		"stalled, slow answer": {[]request{{10, 1500}, {450, 1060}, {900, 610}}, request{1100, 2000}, none},
		"stalled, later": {
			[]request{{10, 1500}, {450, 1060}, {900, 610}, {1340, 170}}, request{1540, 2000}, none,
		},
		"stalled, then with an older one": {[]request{{10, 1}, {450, 1060}, {900, 610}}, request{1100, 410}, 10},
		"stalled, and on the way back after the first": {
			[]request{{10, 1500}, {450, 1960}, {900, 1510}}, request{1100, 1500}, none,
		},
		"stalled after the first": {[]request{{10, 1200}, {450, 1860}, {900, 1410}}, request{1100, 1210}, none},
		"stalled after the first, later": {
			[]request{{10, 1200}, {450, 2300}, {900, 1850}, {1340, 1410}}, request{1500, 1250}, none,
		},

		"far":                        {[]request{{10, 1200}, {450, 1200}, {900, 1200}}, request{1100, 1200}, 10},
		"far, too early":             {[]request{{10, 1200}, {450, 1200}, {900, 1200}}, request{1049, 1200}, none},
		"far, one later than others": {[]request{{10, 1200}, {450, 1500}, {900, 1200}}, request{1100, 1200}, 10},
		"far, one much later":        {[]request{{10, 1200}, {450, 1600}, {900, 1200}}, request{1100, 1200}, none},
		"far, one much later of more": {
			[]request{{10, 1200}, {350, 1500}, {680, 1200}, {1010, 1200}}, request{1100, 1200}, 10,
		},
		"far, a slow transaction":  {[]request{{10, 1200}, {450, 1200}, {900, 1200}}, request{1100, 1800}, 10},
		"far, the first came late": {[]request{{10, 1300}, {450, 1200}, {900, 1200}}, request{1149, 1200}, none},
		"far, the first came late, with more time": {
			[]request{{10, 1300}, {450, 1200}, {900, 1200}}, request{1150, 1200}, 10,
		},
		"far, with one between":           {[]request{{10, 1200}, {700, 1200}}, request{1100, 1200}, none},
		"far, a gap between signs":        {[]request{{10, 1200}, {100, 1200}, {900, 1200}}, request{1100, 1200}, none},
		"far, a gap before the last":      {[]request{{10, 1200}, {100, 1200}, {300, 1200}}, request{1100, 1200}, none},
		"far, one not answered":           {[]request{{10, 1200}, {450, none}, {900, 1200}}, request{1100, 1200}, none},
		"answered before one that is not": {[]request{{10, 1}, {450, none}, {900, 1200}}, request{1100, 1200}, 10},
		"far, the latest long past": {
			[]request{{10, 9}, {450, 9}, {900, 1200}, {1300, 1200}}, request{1500, 1200}, 450,
		},
	} {
		born := time.Now()
		made := func(r request) sign {
			g := sign{sent: born.Add(time.Duration(r.sent) * time.Millisecond)}
			if r.took != none {
				g.answered = g.sent.Add(time.Duration(r.took) * time.Millisecond)
			}
			return g
		}
		l := &link{s: &session{d: &Driver{born: born}, timeout: timeout}}
		for _, r := range c.signs {
			g := made(r)
			l.signs = append(l.signs, &g)
		}
		got, want := l.proven(made(c.transaction)), time.Time{}
		if c.proven != none {
			want = born.Add(time.Duration(c.proven) * time.Millisecond)
		}
		if !got.Equal(want) {
			t.Errorf("%s: proved %v, want %v", name, got.Sub(born), want.Sub(born))
		}
		for _, left := range l.signs {
			if !got.IsZero() && !left.sent.After(got) {
				t.Errorf("%s: a sign that is no use any more was kept", name)
			}
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
