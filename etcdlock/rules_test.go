package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What others got wrong, each with the issue that tells of it, and the rules of the protocol that only this engine can
// show.

// etcd #11456: a waiter whose lease had ended was told that it had the lock, because only the predecessor was looked
// at.
func TestWakeUp_OfAWaiterWhoseKeyIsGone_GrantsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	held := s.ask("lock")
	s.take(held, a)
	w := s.waits(b, s.ask("lock"))
	s.watched(b, 1)
	if _, err := a.client.Delete(s.ctx(), placeAs(b, w.r)); err != nil {
		t.Fatal(err)
	}
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if !errors.Is(w.err, driver.ErrLost) {
		t.Errorf("a waiter whose key was gone got %+v, %v", w.g, w.err)
	}
}

// etcd #22082: a retried Unlock deleted a newer lock, because it deleted by key and not by revision.
func TestRelease_OfAKeyThatWasCreatedAnew_LeavesIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	held := s.ask("lock")
	s.take(held, a)
	place := placeAs(a, held)
	for _, op := range []clientv3.Op{clientv3.OpDelete(place), clientv3.OpPut(place, "somebody else's")} {
		if _, err := a.client.Do(s.ctx(), op); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.release(a, held); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the release says %v", err)
	}
	found, err := a.client.Get(s.ctx(), place)
	if err != nil || len(found.Kvs) != 1 {
		t.Errorf("the newer key is %v, %v", found, err)
	}
}

// etcd #19597: a waiter whose session had died went on waiting.
func TestWait_WhoseSessionDies_Ends(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const session = 3 * time.Second
	p := servers.NewProxy(t, s.node.Addr())
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(p.Addr(), session)
	s.take(s.ask("lock"), a)
	w := s.waits(b, s.ask("lock"))
	p.BlackHole(servers.BothWays)
	s.ends(w, session+shortestFloor/2) // and not by the look that is taken seldom
	if !errors.Is(w.err, driver.ErrLost) {
		t.Errorf("the wait ended with %v", w.err)
	}
	p.Pass()
}

// The session does not end with the context of the request that it was made for.
func TestSession_OutlivesTheContextOfTheRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const session = 4 * time.Second
	a := s.opens(s.node.Addr(), session)
	ctx, cancel := context.WithCancel(context.Background())
	r := s.ask("lock")
	lost := make(chan driver.LostReason, 1)
	r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	g, err := a.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case reason := <-lost:
		t.Errorf("the hold was lost: %v", reason)
	case <-time.After(session * 3 / 2):
	}
	if since := time.Since(g.Session.Confirmed()); since > session {
		t.Errorf("the session was confirmed %v ago", since)
	}
	if err := s.release(a, r); err != nil {
		t.Error(err)
	}
}

// Signs of life were given up after a sixth of the timeout: a server farther away than that lost every session.
func TestSession_FarFromTheServer_GoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for range 2 { // the machine may stand still
		reason := s.lostFarAway()
		if reason == "" {
			return
		}
		t.Logf("once more: the hold was lost: %v", reason)
	}
	if reason := s.lostFarAway(); reason != "" {
		t.Errorf("three times in a row the hold was lost: %v", reason)
	}
}

// lostFarAway says why a hold was lost far from the server, or nothing if it outlives its session's timeout.
func (s *stage) lostFarAway() driver.LostReason {
	const session = 6 * time.Second
	p := servers.NewProxy(s.t, s.node.Addr())
	a := s.opens(p.Addr(), session)
	r := s.ask("lock")
	lost := make(chan driver.LostReason, 1)
	r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	g := s.take(r, a)
	p.Delay(servers.BothWays, session/8)
	defer p.Pass()
	for begun := time.Now(); g.Session.Confirmed().Before(begun.Add(session * 3 / 2)); {
		select {
		case reason := <-lost:
			return reason
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.Pass()
	if err := s.release(a, r); err != nil {
		s.t.Error(err)
	}
	return ""
}

// The servers answer again when the second comes, and only an attempt from before does not know.
func TestSession_WhileOneIsMadeInVain_IsTriedAnew(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := s.opens(s.node.Addr()+"?request-timeout=3s", time.Minute)
	d.mu.Lock()
	first := d.current
	d.mu.Unlock()
	s.node.Stop()
	defer s.node.Cont()
	first.lose(errUnanswered)
	ask := func() <-chan error {
		ctx, waits := drivertest.Awaited(s.ctx())
		said := make(chan error, 1)
		go func() { // ends with ctx
			_, err := d.session(ctx)
			said <- err
		}()
		<-waits
		return said
	}
	one, other := ask(), ask()
	if err := <-one; err == nil {
		t.Error("a session was made although the server hangs")
	}
	s.node.Cont()
	if err := <-other; err != nil {
		t.Errorf("who came while it was made in vain: %v", err)
	}
}

func TestPacemaker_WaitsForAnAnswerAsLongAsAnswersTake(t *testing.T) {
	t.Parallel()
	p := &pacemaker{s: &session{timeout: 6 * time.Second}, limit: time.Second}
	none := errors.New("no answer")
	for i, c := range []struct {
		err        error
		took, want time.Duration
	}{
		{none, time.Second, 2 * time.Second},
		{none, 10 * time.Millisecond, 2 * time.Second}, // refused at once
		{nil, 1400 * time.Millisecond, 2800 * time.Millisecond},
		{none, 2800 * time.Millisecond, 3 * time.Second}, // half a timeout at most
		{nil, 10 * time.Millisecond, time.Second},        // a sixth at least
	} {
		if p.learn(c.err, c.took); p.limit != c.want {
			t.Errorf("step %d: the limit is %v, want %v", i, p.limit, c.want)
		}
	}
}

// Two members may hang, so the third try must have as long as the first.
func TestPacemaker_WhenNobodyAnswers_TriesThreeTimes(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second
	p := &pacemaker{s: &session{timeout: timeout}, limit: timeout / tries}
	none := errors.New("no answer")
	since := timeout / heartbeats
	for range 2 {
		took := p.limit
		since += took + p.learn(none, took)
	}
	if left := timeout - since; left < timeout/tries {
		t.Errorf("the third try has %v of %v", left, timeout)
	}
	if p.learn(none, 0) == 0 {
		t.Error("a server that refuses at once is asked again without a pause")
	}
}

// A release wakes one waiter, whatever their number, and lets them in in turn. All are of one process, which has one
// session: they exclude each other all the same.
func TestHundredWaiters_OneWakeUpForEachRelease(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const n = 100
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	held := s.ask("lock")
	last := s.take(held, a).Token
	var all []*waiting
	for range n {
		all = append(all, s.waits(b, s.ask("lock")))
	}
	s.watched(b, n)
	before := b.listener.wakes.Load()
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	for i, w := range all {
		s.ends(w, rulesPatience)
		if w.err != nil || w.g.Token <= last {
			t.Fatalf("waiter %d: %+v, %v, after token %d", i, w.g, w.err, last)
		}
		last = w.g.Token
		for _, later := range all[i+1:] {
			select {
			case <-later.done:
				t.Fatalf("two are in")
			default:
			}
		}
		if woken := b.listener.wakes.Load() - before; woken != int64(i+1) {
			t.Fatalf("%d releases have woken %d times", i+1, woken)
		}
		if err := s.release(b, w.r); err != nil {
			t.Fatal(err)
		}
	}
}

// A late copy of an acquire that was given up finds a tomb, and takes nothing. The tomb does not stay.
func TestUndo_OfARequestWithoutAnAnswer_RefusesALateCopyUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := servers.NewProxy(t, s.node.Addr())
	a := s.opens(p.Addr(), time.Minute)
	p.BlackHole(servers.ToServer)
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	r := s.ask("lock")
	said := make(chan error, 1)
	go func() { // ends with ctx
		_, err := a.Acquire(ctx, r)
		said <- err
	}()
	s.soon("the request to be under way", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		e := a.entries[holdID{r.Key, r.ID}]
		return e != nil && e.open > 0
	})
	cancel()
	if err := <-said; !errors.Is(err, context.Canceled) {
		t.Fatalf("an acquire without an answer says %v", err)
	}
	p.Pass()
	if err := a.Release(s.ctx(), &driver.Release{Key: r.Key, ID: r.ID, Undo: true}); err != nil {
		t.Fatal(err)
	}
	tomb := a.names.tomb(r.Key, r.ID)
	if found, err := a.client.Get(s.ctx(), tomb); err != nil || len(found.Kvs) != 1 {
		t.Errorf("the tomb is %v, %v", found, err)
	}
	b := s.opens(s.node.Addr(), time.Minute) // knows nothing of it, as a server does of a late copy
	if _, err := b.Acquire(s.ctx(), r); !errors.Is(err, driver.ErrLost) {
		t.Errorf("a late copy says %v", err)
	}
	a.mu.Lock()
	for i := range a.tombs {
		a.tombs[i].due = time.Now()
	}
	a.mu.Unlock()
	if due, more := a.dueTombs(); len(due) != 1 || more {
		t.Errorf("%d tombs are due, and there are more: %v", len(due), more)
	}
}

// So it is if the hold is given back by a requeue: torture found a queue key that a late copy had made after that, and
// nobody gave back.
func TestRequeue_OfAHoldOfWhichACopyMayBeUnderWay_RefusesIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	held, next := s.ask("lock"), s.ask("lock")
	s.take(held, a)
	a.mu.Lock()
	a.entries[holdID{held.Key, held.ID}].open++ // as if the first of two attempts had brought no answer
	a.mu.Unlock()
	if _, err := a.Requeue(s.ctx(), &driver.Release{Key: held.Key, ID: held.ID}, next); err != nil {
		t.Fatal(err)
	}
	// b knows nothing of it, as a server does of a late copy
	if _, err := b.Acquire(s.ctx(), held); !errors.Is(err, driver.ErrLost) {
		t.Errorf("a late copy says %v", err)
	}
	a.mu.Lock()
	buried := len(a.tombs)
	a.mu.Unlock()
	if buried != 1 {
		t.Errorf("%d tombs are to be taken away, want 1", buried)
	}
}

// A hold that was broken is told so, also if its release comes before the notice.
func TestBreak_WhoseNoticeIsNotHeard_IsToldByTheRelease(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	held := s.ask("lock")
	told := make(chan driver.LostReason, 2)
	held.Lost = func(reason driver.LostReason, _ error) { told <- reason }
	g := s.take(held, a)
	a.listener.mu.Lock()
	clear(a.listener.watches) // it is deaf from now on
	a.listener.mu.Unlock()
	if err := b.Break(s.ctx(), held.Key, g.Token); err != nil {
		t.Fatal(err)
	}
	var why *driver.LostError
	if err := s.release(a, held); !errors.As(err, &why) || why.Reason != driver.LostBroken {
		t.Errorf("the release says %v", err)
	}
	select {
	case reason := <-told:
		if reason != driver.LostBroken || len(told) != 0 {
			t.Errorf("the loss is told as %q, and %d times more", reason, len(told))
		}
	default:
		t.Error("the loss is not told")
	}
}

// A lock that is taken again and again has two keys in turn: etcd goes through all that there ever were.
func TestKeys_AreUsedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	seen := map[string]bool{}
	held := s.ask("lock")
	s.take(held, a)
	for range 10 {
		next := s.ask("lock")
		if _, err := a.Requeue(s.ctx(), &driver.Release{Key: held.Key, ID: held.ID}, next); err != nil {
			t.Fatal(err)
		}
		seen[placeAs(a, next)] = true
		held = next
	}
	for range 10 {
		if err := s.release(a, held); err != nil {
			t.Fatal(err)
		}
		held = s.ask("lock")
		s.take(held, a)
		seen[placeAs(a, held)] = true
	}
	if len(seen) != 2 {
		t.Errorf("20 acquisitions have used %d keys: %v", len(seen), seen)
	}
}
