package zklock

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// lowerLongest has the next start of n bound the timeouts of sessions lower than before.
func lowerLongest(t *testing.T, n *servers.ZooKeeperNode, before, after string) {
	t.Helper()
	file := filepath.Join(n.Dir, "zoo.cfg")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte("maxSessionTimeout=" + before + "\n")
	if !bytes.Contains(text, line) {
		t.Fatalf("the configuration has no %q: %s", line, text)
	}
	text = bytes.Replace(text, line, []byte("maxSessionTimeout="+after+"\n"), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The servers bound a session's timeout anew at each reconnection. A holder that relied on the longer one would be in
// beside the next owner, so it is told, and its locks are free as soon as it knows.
func TestReconnection_ToAServerWithALowerLimit_IsToldAsALoss(t *testing.T) {
	t.Parallel()
	n, root := servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
		Config: map[string]string{"maxSessionTimeout": "40000"},
	}), freshRoot()
	c := openLocks(t, urlOf(root, n.Addr()), leased(40*time.Second))
	l := mustLock(t, c, "lock")
	w := startLock(t, urlOf(root, n.Addr()), leased(20*time.Second), "lock")
	lowerLongest(t, n, "40000", "30000")
	n.Restart()
	at := gone(t, l)
	var lost *interlock.LostError
	if !errors.As(l.Err(), &lost) || lost.Reason != "session" {
		t.Errorf("the lease says %v, want that its session is gone", l.Err())
	}
	next := w.granted("who waited in a session that is as long as before")
	if took := time.Since(at); took > 10*time.Second {
		t.Errorf("the lock was free %v after its holder was told", took)
	}
	mustUnlock(t, next.l)
	again := mustLock(t, c, "lock")
	if left := time.Until(again.Deadline()); left > 30*time.Second {
		t.Errorf("a hold of the next session is trusted for %v", left)
	}
	mustUnlock(t, again)
}

// saysAgain has the session hear once more that a server has accepted it, for timeout this time.
func (s *session) saysAgain(timeout time.Duration) {
	s.line.mu.Lock()
	s.line.greeting.timeout = timeout
	s.line.mu.Unlock()
	s.handleEvent(zk.Event{Type: zk.EventSession, State: zk.StateHasSession})
}

// A session that became shorter is closed at the servers, which would otherwise keep its locks from everybody. That
// comes after its owners were told.
func TestSessionThatBecomesShorter_IsClosedWhenItsOwnersKnow(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	// On a busy machine the goodbye may come too late. Then the servers end the session after its timeout.
	d := open(t, []string{n.Addr()}, &Options{Root: root, Timeout: 6 * time.Second})
	lock := root + "/mutex/lock"
	r, lost, left := request("lock"), make(chan driver.LostReason, 1), make(chan int, 1)
	r.Lost = func(reason driver.LostReason, _ error) {
		<-time.After(farewell / 10) // what must wait for this has time to be too early
		left <- len(a.nodes(lock))
		lost <- reason
	}
	take(t, d, r)
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	for _, same := range []time.Duration{s.timeout, s.timeout + time.Second} {
		s.saysAgain(same)
		select {
		case <-s.over:
			t.Fatalf("a timeout of %v instead of %v has ended the session", same, s.timeout)
		default:
		}
	}
	s.saysAgain(s.timeout - time.Millisecond)
	if reason := receive(t, "the loss of the hold", lost); reason != driver.LostSession {
		t.Errorf("the reason is %s", reason)
	}
	if n := <-left; n != 1 {
		t.Errorf("%d nodes were in the queue while the owner was told", n)
	}
	soon(t, "the node to be gone", func() bool { return len(a.nodes(lock)) == 0 })
	next := request("lock")
	take(t, d, next)
	give(t, d, next)
}

// A server that came back with a lower limit makes the session shorter before it says so. If that answer is lost and
// nothing else is heard, the holder is told before anybody can get in.
func TestReconnection_ToAServerWithALowerLimit_WhoseAnswerIsLost_IsToldAsALoss(t *testing.T) {
	t.Parallel()
	n, root := servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
		Config: map[string]string{"maxSessionTimeout": "40000"},
	}), freshRoot()
	m := newMoody(t, n.Addr())
	c := openLocks(t, urlOf(root, m.addr), leased(30*time.Second))
	w, l := locktest.NewInside(t, "lock"), mustLock(t, c, "lock")
	w.Enter(l)
	lowerLongest(t, n, "40000", "4000")
	m.silence(true)
	n.Restart()
	soon(t, "the server to take the session back", func() bool {
		said, err := n.Ask(bounded(t), "cons")
		return err == nil && strings.Contains(said, "sid=0x1")
	})
	m.cut()
	next := mustLock(t, openLocks(t, urlOf(root, n.Addr()), leased(4*time.Second)), "lock")
	w.Enter(next) // fails if the first may still be trusted
	if err := l.Err(); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the lease says %v", err)
	}
	receive(t, "the loss to be told", l.Lost())
	mustUnlock(t, next)
}

// An ensemble that elects a leader serves nobody, and is not asked to take the session back. So no doubt begins,
// however long that takes.
func TestReconnection_ToAServerWithoutALeader_LeavesNoDoubt(t *testing.T) {
	t.Parallel()
	e := servers.NewZooKeeperEnsemble(t, options())
	f := e.Followers()[0]
	d := open(t, []string{f.Addr()}, &Options{Root: freshRoot(), Timeout: time.Minute})
	r := request("lock")
	g := take(t, d, r)
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	before := g.Session.Confirmed()
	for _, n := range e.Nodes() {
		if n != f {
			n.Kill()
		}
	}
	soon(t, "the server to be asked, and to have no leader", func() bool {
		return errors.Is(s.line.failure(), errNotServing)
	})
	if now := g.Session.Confirmed(); now.Before(before) {
		t.Errorf("the session counts as confirmed %v earlier", before.Sub(now))
	}
	for _, n := range e.Nodes() {
		if n != f {
			n.Restart()
		}
	}
	e.AwaitReady()
	give(t, d, r)
}

// A doubt ends when a connection is ready, and costs nothing then.
func TestReconnection_ThatIsAnswered_LeavesNoDoubt(t *testing.T) {
	t.Parallel()
	m := newMoody(t, sharedServer(t).Addr())
	d := open(t, []string{m.addr}, &Options{Root: freshRoot(), Timeout: 20 * time.Second})
	r := request("lock")
	g := take(t, d, r)
	before := g.Session.Confirmed()
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	m.silence(true)
	s.line.cut()
	soon(t, "the doubt to begin", func() bool { return g.Session.Confirmed().Before(before) })
	m.silence(false)
	s.line.cut() // the greeting was lost
	soon(t, "the session to be confirmed", func() bool { return g.Session.Confirmed().After(before) })
	give(t, d, r)
}

// A leader that was cut off greets from memory and answers nothing else. The holder is told when the doubt has lasted,
// and not when the library gives that connection up: it does so after two thirds of the timeout.
func TestReconnection_ThatIsGreetedAndNotAnswered_IsToldWhenTheDoubtHasLasted(t *testing.T) {
	t.Parallel()
	m := newMoody(t, sharedServer(t).Addr())
	d := open(t, []string{m.addr}, &Options{Root: freshRoot(), Timeout: 30 * time.Second})
	r, lost := request("lock"), make(chan error, 1)
	r.Lost = func(_ driver.LostReason, cause error) { lost <- cause }
	take(t, d, r)
	s := sessionOf(d)
	m.onlyGreets()
	began := time.Now()
	s.line.cut()
	soon(t, "the session to be greeted again", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return s.turn > 1
	})
	if cause := receive(t, "the loss to be told", lost); !errors.Is(cause, errUnclear) {
		t.Errorf("the cause of the loss is %v", cause)
	}
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("it was told after %v", took)
	}
}
