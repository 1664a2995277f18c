package zklock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// The reply to the making of a node may be lost, and then its request may have been, too.

// protected is a client behind a network, and an operator who sees what it leaves.
type protected struct {
	d    *Driver
	p    *servers.Proxy
	a    *admin
	lock string // the path of the lock's node
}

func newProtected(t *testing.T) *protected {
	t.Helper()
	n := sharedServer(t)
	x := &protected{p: servers.NewProxy(t, n.Addr()), a: newAdmin(t, n.Addr())}
	root := freshRoot()
	x.d = open(t, []string{x.p.Addr()}, &Options{Timeout: 10 * time.Second, Root: root})
	x.lock = root + "/mutex/lock"
	r := request("lock") // so that the lock's node is there
	take(t, x.d, r)
	give(t, x.d, r)
	return x
}

// reconnect cuts the connection, and lets the next one be.
func (x *protected) reconnect() {
	x.p.Reset()
	x.p.Pass()
}

func TestLostReplyOfACreate_LeavesOneNode_WhichIsTaken(t *testing.T) {
	x := newProtected(t)
	keep := queueKeeper(t, x) // otherwise the container may vanish
	x.p.DropReplies()
	r := request("lock")
	w := begin(bounded(t), x.d, r)
	soon(t, "the node to be made", func() bool { return len(x.a.nodes(x.lock)) == 2 })
	before := x.a.nodes(x.lock)
	x.reconnect()
	receive(t, "the wait to be queued", w.queued)
	if now := x.a.nodes(x.lock); len(now) != 2 || !sameNames(now, before) {
		t.Fatalf("after a lost reply there are %v, want the same as before: %v", now, before)
	}
	keep()
	g := w.granted(t, "who was before has left")
	names := x.a.nodes(x.lock)
	if len(names) != 1 {
		t.Fatalf("a holder has the nodes %v", names)
	}
	_, stat, err := x.a.Get(x.lock + "/" + names[0])
	if err != nil || g.Token != uint64(stat.Czxid)*passes {
		t.Errorf("the token is %d, want %d x %d (%v)", g.Token, stat.Czxid, passes, err)
	}
	give(t, x.d, r)
}

func TestLostReplyOfACreate_ThatIsCancelled_LeavesNothing(t *testing.T) {
	x := newProtected(t)
	keep := queueKeeper(t, x)
	x.p.DropReplies()
	r := request("lock")
	ctx, cancel := context.WithCancel(context.Background())
	w := begin(ctx, x.d, r)
	soon(t, "the node to be made", func() bool { return len(x.a.nodes(x.lock)) == 2 })
	cancel()
	if got := receive(t, "the cancelled call to return", w.done); !errors.Is(got.err, context.Canceled) {
		t.Errorf("%v", got.err)
	}
	x.reconnect()
	if err := x.d.Release(bounded(t), &driver.Release{Key: r.Key, ID: r.ID, Undo: true}); err != nil {
		t.Fatal(err)
	}
	if n := len(x.a.nodes(x.lock)); n != 1 {
		t.Errorf("%d nodes after the undo, want that of the keeper alone", n)
	}
	keep()
}

// A request that never arrived must not take the node of another session for its own, even if that has the same name.
func TestLostCreate_DoesNotTakeAForeignNodeForItsOwn(t *testing.T) {
	x := newProtected(t)
	x.d.mu.Lock()
	next := letter(driver.Exclusive) + x.d.process + strconv.FormatUint(x.d.last+1, 36) + "-"
	x.d.mu.Unlock()
	keep := queueKeeper(t, x) // the server removes an empty container, at any moment
	foreign, err := x.a.Create(x.lock+"/"+next, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	keep()
	x.p.BlackHole(servers.ToServer)
	r := request("lock")
	w := begin(bounded(t), x.d, r)
	soon(t, "the request to be under way", func() bool {
		x.d.mu.Lock()
		defer x.d.mu.Unlock()
		return x.d.entries[r.ID] != nil && x.d.last > 1
	})
	x.reconnect()
	select {
	case <-w.queued:
	case got := <-w.done:
		t.Fatalf("instead of waiting behind the foreign node it got %+v, %v", got.g, got.err)
	case <-time.After(patience):
		t.Fatal("it does not wait behind the foreign node")
	}
	if names := x.a.nodes(x.lock); len(names) != 2 {
		t.Fatalf("the nodes are %v, want the foreign one and ours", names)
	}
	if err := x.a.Delete(foreign, -1); err != nil {
		t.Fatal(err)
	}
	w.granted(t, "the foreign node has gone")
	give(t, x.d, r)
}

// A copy of the request that a slow network delivers after the next connection was made is refused.
func TestLateCopyOfACreate_OfAnEarlierConnection_IsRefused(t *testing.T) {
	x := newProtected(t)
	x.d.mu.Lock()
	l := x.d.session.link
	x.d.mu.Unlock()
	x.reconnect()
	soon(t, "the next connection", func() bool {
		x.d.mu.Lock()
		defer x.d.mu.Unlock()
		return x.d.session.link != nil && x.d.session.link != l
	})
	m := &making{l: l, lock: x.lock, name: "wlate-", done: make(chan struct{})}
	if m.run(); !errors.Is(m.err, errStale) {
		t.Errorf("a create of an earlier connection says %v, want that it is stale", m.err)
	}
	for _, name := range x.a.nodes(x.lock) {
		if strings.HasPrefix(name, "wlate-") {
			t.Errorf("it was carried out: %s", name)
		}
	}
	r := request("lock") // all goes on
	take(t, x.d, r)
	give(t, x.d, r)
}

// A release whose reply is lost has ended the hold, which is no loss when it is asked again. It has ended it once: what
// is asked after that finds no hold.
func TestLostReplyOfARelease_EndsTheHoldOnce(t *testing.T) {
	x := newProtected(t)
	r := request("lock")
	take(t, x.d, r)
	x.p.DropReplies()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.d.Release(ctx, release(r)) }()
	soon(t, "the node to be gone", func() bool { return len(x.a.nodes(x.lock)) == 0 })
	cancel()
	if err := receive(t, "the release to return", done); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	x.reconnect()
	var err error
	soon(t, "the release asked again to be answered", func() bool {
		err = x.d.Release(bounded(t), release(r))
		return !errors.Is(err, driver.ErrUnavailable) // the end of the connection may not have been noticed yet
	})
	if err != nil {
		t.Errorf("the release asked again says %v", err)
	}
	if err := x.d.Release(bounded(t), release(r)); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the release after the hold was over says %v", err)
	}
}

// queueKeeper takes the lock through a client of its own, and returns what gives it back.
func queueKeeper(t *testing.T, x *protected) func() {
	t.Helper()
	d := open(t, []string{sharedServer(t).Addr()}, &Options{Root: x.d.opts.Root})
	r := request("lock")
	take(t, d, r)
	return func() { give(t, d, r) }
}

func sameNames(a, b []string) bool {
	return strings.Join(sorted(a), " ") == strings.Join(sorted(b), " ")
}
