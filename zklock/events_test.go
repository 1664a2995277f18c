package zklock

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// crossing is a lock with a holder and two who wait for it, each in a session of its own, and an operator.
type crossing struct {
	t              *testing.T
	a              *admin
	lock           string // the path of the lock's node
	held           *driver.Request
	holder         *Driver
	first, second  *waiting
	ahead, further *Driver // theirs
}

func newCrossing(t *testing.T, mode driver.Mode) *crossing {
	t.Helper()
	n, root := sharedServer(t), freshRoot()
	x := &crossing{t: t, a: newAdmin(t, n.Addr()), lock: root + "/rw/lock"}
	x.holder = open(t, []string{n.Addr()}, &Options{Root: root})
	x.ahead, x.further = open(t, []string{n.Addr()}, &Options{Root: root}), open(t, []string{n.Addr()},
		&Options{Root: root})
	ask := func(m driver.Mode) *driver.Request {
		r := request("lock")
		r.Kind, r.Mode = driver.KindRWMutex, m
		return r
	}
	x.held = ask(driver.Exclusive)
	take(t, x.holder, x.held)
	x.first = queue(t, x.ahead, ask(driver.Exclusive))
	x.second = queue(t, x.further, ask(mode))
	return x
}

// node is the path of the node of d, which has one request.
func (x *crossing) node(d *Driver) string {
	x.t.Helper()
	for _, name := range x.a.nodes(x.lock) {
		if strings.HasPrefix(name[1:], d.process) {
			return x.lock + "/" + name
		}
	}
	x.t.Fatalf("%s has no node among %v", d.process, x.a.nodes(x.lock))
	return ""
}

// write has the operator write to the node of d, as one does by mistake.
func (x *crossing) write(d *Driver) {
	x.t.Helper()
	if _, err := x.a.Set(x.node(d), []byte("a mistake"), -1); err != nil {
		x.t.Fatal(err)
	}
}

// looks returns when a waiter has looked at the queue and waits on.
func (x *crossing) looks(w *waiting) {
	x.t.Helper()
	select {
	case <-w.queued:
	case got := <-w.done:
		x.t.Fatalf("a waiter is in beside the holder: %+v, %v", got.g, got.err)
	case <-time.After(patience):
		x.t.Fatal("a waiter has not looked at the queue")
	}
}

// nobodyIsIn fails if one of those who wait has the lock.
func (x *crossing) nobodyIsIn(what string) {
	x.t.Helper()
	for _, w := range []*waiting{x.first, x.second} {
		select {
		case got := <-w.done:
			x.t.Fatalf("%s: a waiter is in beside the holder: %+v, %v", what, got.g, got.err)
		default:
		}
	}
}

// passesOn has the holder and both waiters give the lock on, and looks that each is let in by that alone.
func (x *crossing) passesOn() {
	x.t.Helper()
	x.nobodyIsIn("before the release")
	give(x.t, x.holder, x.held)
	x.first.granted(x.t, "the holder has left")
	select {
	case got := <-x.second.done:
		x.t.Fatalf("two are in: %+v, %v", got.g, got.err)
	default:
	}
	give(x.t, x.ahead, x.first.r)
	x.second.granted(x.t, "the first waiter has left")
	give(x.t, x.further, x.second.r)
}

// A write to the node of one who waits is none of the holder's doing: who is behind looks, and waits on.
func TestWrite_ToANodeThatWaits_LetsNobodyIn(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]driver.Mode{"Exclusive": driver.Exclusive, "Shared": driver.Shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newCrossing(t, mode)
			for range 3 {
				x.write(x.ahead)
				x.looks(x.second)
			}
			x.nobodyIsIn("after a write to a waiter's node")
			x.passesOn()
		})
	}
}

// Nor does it cost the waiter the hold that it gets after that: only a write to a hold's node ends one.
func TestWrite_ToANodeThatWaits_DoesNotEndTheHoldThatItBecomes(t *testing.T) {
	t.Parallel()
	x := newCrossing(t, driver.Exclusive)
	lost := make(chan driver.LostReason, 1)
	x.ahead.mu.Lock()
	x.ahead.entries[x.first.r.ID].lost = func(reason driver.LostReason, _ error) { lost <- reason }
	x.ahead.mu.Unlock()
	x.write(x.ahead)
	give(t, x.holder, x.held)
	x.first.granted(t, "the holder has left")
	path := x.node(x.ahead)
	soon(t, "the hold to be watched", func() bool {
		x.ahead.mu.Lock()
		defer x.ahead.mu.Unlock()
		w := x.ahead.session.watches[path]
		return len(lost) > 0 || w != nil && w.armed && w.hold != nil
	})
	select {
	case reason := <-lost:
		t.Fatalf("a write before the grant has ended the hold: %s", reason)
	default:
	}
	x.write(x.ahead)
	if reason := receive(t, "the loss of a hold whose node was written to", lost); reason != driver.LostBroken {
		t.Errorf("the reason is %s", reason)
	}
	x.second.granted(t, "the hold was broken")
	give(t, x.further, x.second.r)
}

// Whatever the library tells about nodes only makes a waiter look at the queue, also if nothing of it is true.
func TestEvents_OfEveryKind_LetNobodyIn(t *testing.T) {
	t.Parallel()
	x := newCrossing(t, driver.Exclusive)
	x.further.mu.Lock()
	s := x.further.session
	x.further.mu.Unlock()
	paths := []string{x.node(x.holder), x.node(x.ahead), x.node(x.further), x.lock}
	for kind := zk.EventNodeCreated; kind <= zk.EventNodeChildrenChanged; kind++ {
		for _, path := range paths {
			s.handleEvent(zk.Event{Type: kind, State: zk.StateHasSession, Path: path})
			if path == paths[1] && (kind == zk.EventNodeDataChanged || kind == zk.EventNodeDeleted) {
				x.looks(x.second)
			}
		}
	}
	x.nobodyIsIn("after events of which none was true")
	x.passesOn()
}

// A reconnection makes everybody look, and lets nobody in either.
func TestReconnection_LetsNobodyIn(t *testing.T) {
	t.Parallel()
	x := newCrossing(t, driver.Exclusive)
	for _, d := range []*Driver{x.ahead, x.further} {
		d.mu.Lock()
		s := d.session
		d.mu.Unlock()
		s.line.cut()
	}
	x.looks(x.first)
	x.looks(x.second)
	x.write(x.ahead)
	x.looks(x.second)
	x.passesOn()
}

// A hold whose node is written to while its client is cut off is lost too, and then nobody has the lock. The message
// comes before anything can be sent over the new connection; the node must go all the same.
func TestWrite_ToTheNodeOfAHoldThatIsCutOff_LeavesTheLockFree(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a, p := newAdmin(t, n.Addr()), servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: time.Minute})
	r, lost := request("lock"), make(chan driver.LostReason, 1)
	r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
	take(t, d, r)
	path := root + "/mutex/lock/" + a.nodes(root + "/mutex/lock")[0]
	soon(t, "the hold to be watched", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		w := d.session.watches[path]
		return w != nil && w.armed && w.hold != nil
	})
	p.Refuse()
	p.Reset()
	if _, err := a.Set(path, nil, -1); err != nil {
		t.Fatal(err)
	}
	p.Pass()
	if reason := receive(t, "the loss of the hold", lost); reason != driver.LostBroken {
		t.Errorf("the reason is %s", reason)
	}
	next, other := request("lock"), open(t, []string{n.Addr()}, &Options{Root: root})
	take(t, other, next) // long before the session's timeout
	give(t, other, next)
}

// Until the library sets its watches again it reads what answers write. So it gets no answer over a new connection
// before, and the keeper needs one to let requests in.
func TestReconnection_IsUsedAfterTheLibrarysWatchesAreSet(t *testing.T) {
	t.Parallel()
	x := newCrossing(t, driver.Exclusive) // who waits has a watch
	d := x.further
	d.mu.Lock()
	s, before := d.session, d.session.turn
	d.mu.Unlock()
	s.line.cut()
	soon(t, "a new connection to be used", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return s.turn > before && s.link != nil
	})
	s.line.mu.Lock()
	rewatched := s.line.conn.rewatched
	s.line.mu.Unlock()
	select {
	case <-rewatched:
	default:
		t.Error("a connection is used before the library has set its watches again")
	}
}
