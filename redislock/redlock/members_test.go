package redlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// of opens the URL of these servers.
func of(ctx context.Context, query string, addrs ...string) (*Driver, error) {
	d, err := driver.DefaultMux.Open(ctx,
		"redlock://"+strings.Join(addrs, ",")+"?check=none&node-timeout=5s&"+query, driver.Config{})
	if err != nil {
		return nil, err
	}
	return d.(*Driver), nil
}

// mustOpen is of for servers that can be opened. The driver is closed with the test.
func mustOpen(t *testing.T, query string, addrs ...string) *Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := of(ctx, query, addrs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	soon(t, "all nodes are connected", func() bool {
		for _, n := range d.nodes {
			if n.driver() == nil {
				return false
			}
		}
		return true
	})
	return d
}

// isRefused fails unless the servers cannot be opened, because they are another set.
func isRefused(t *testing.T, query string, addrs ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := of(ctx, query, addrs...)
	if err == nil {
		_ = d.Close()
	}
	if !errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), "is of a set of") {
		t.Errorf("%v: %v, want one that matches ErrConflict and says why", addrs, err)
	}
}

// tryOf tries to take a lock of that name.
func tryOf(t *testing.T, d *Driver, name string) (driver.Grant, *driver.Request, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := &stage{name: name}
	r := s.try()
	r.Lease = time.Second
	g, err := d.Acquire(ctx, r)
	return g, r, err
}

// Programs that name three and five servers would each have a majority: two of the three are away for one of them.
func TestSet_OfAnotherSize_IsRefused(t *testing.T) {
	t.Run("fewer than the first client", func(t *testing.T) {
		nodes := addrs(startNodes(t, 5))
		mustOpen(t, "", nodes...)
		isRefused(t, "", nodes[:3]...)
	})
	t.Run("more than the first client", func(t *testing.T) {
		nodes := addrs(startNodes(t, 5))
		mustOpen(t, "", nodes[:3]...)
		isRefused(t, "", nodes...)
	})
}

func TestSet_UnderOtherNames_IsTheSame(t *testing.T) {
	nodes := addrs(startNodes(t, 3))
	a := mustOpen(t, "", nodes...)
	var others []string
	for _, addr := range nodes {
		others = append(others, servers.NewProxy(t, addr).Addr())
	}
	b := mustOpen(t, "", others[2], others[0], others[1])
	if _, _, err := tryOf(t, a, "one"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tryOf(t, b, "one"); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("a lock that is held, under other names of the servers: %v", err)
	}
}

// A node that is connected to when the client runs already is told by its mark too.
func TestSet_WithANodeOfAnother_DoesNotCountItsVote(t *testing.T) {
	nodes := startNodes(t, 6)
	mustOpen(t, "", addrs(nodes[:3])...)
	mustOpen(t, "", addrs(nodes[3:])...)
	proxy := servers.NewProxy(t, nodes[3].Addr())
	proxy.Refuse()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := of(ctx, "", nodes[0].Addr(), nodes[1].Addr(), proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	proxy.Pass()
	soon(t, "the third node is known to be of another set", func() bool {
		if d.nodes[2].driver() == nil {
			return false
		}
		_, why := d.nodes[2].guard.standing()
		return isOther(why)
	})
	if _, _, err := tryOf(t, d, "one"); err != nil {
		t.Errorf("with the two others: %v", err)
	}
	found := false
	for _, f := range d.Diagnose(t.Context()) {
		found = found || f.Check == "set" && f.Level == driver.LevelFail
	}
	if !found {
		t.Error("doctor does not tell it")
	}
	nodes[0].Kill()
	if _, _, err := tryOf(t, d, "two"); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("with one of them: %v", err)
	}
}

// emptied restarts a node without its data, and waits until it knows that it has no mark.
func emptied(t *testing.T, n *servers.RedisNode) {
	t.Helper()
	n.Kill()
	n.Restart()
}

func TestSet_ANodeThatCameBackEmpty_GetsItsPlaceBack(t *testing.T) {
	nodes := startNodes(t, 3)
	const query = "longest-lease=1s"
	mustOpen(t, query, addrs(nodes)...)
	emptied(t, nodes[2])
	d := mustOpen(t, query, addrs(nodes)...) // another client, which has not seen the node before
	if _, why := d.nodes[2].guard.standing(); !errors.Is(why, errRests) {
		t.Fatalf("an empty node: %v", why)
	}
	nodes[0].Kill()
	soon(t, "it votes", func() bool {
		_, _, err := tryOf(t, d, "one")
		return err == nil
	})
	nodes[0].Restart()
	isRefused(t, query, slices.Concat(addrs(nodes[1:]), addrs(startNodes(t, 3)))...)
}

// The marks of before there were sets are the run IDs alone.
func TestSet_IsMadeOfMarksOfBefore(t *testing.T) {
	nodes := startNodes(t, 3)
	f := &fleet{t: t, nodes: nodes}
	for i := range nodes {
		f.marked(i)
	}
	d := mustOpen(t, "longest-lease=1h", addrs(nodes)...)
	if _, _, err := tryOf(t, d, "one"); err != nil {
		t.Fatal(err)
	}
	isRefused(t, "longest-lease=1h", slices.Concat(addrs(nodes), addrs(startNodes(t, 2)))...)
	// A program of before reads the mark like this, and cannot use the node then.
	_, err := nodes[0].Do(t.Context(), "EVAL", "return redis.call('GET', KEYS[1])", "1", "interlock:"+markKey)
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a program of before takes the node as it is: %v", err)
	}
}

// From three servers to five. At each step clients of both kinds run, and exclude each other.
func TestSet_IsChanged_WhileTheLocksAreInUse(t *testing.T) {
	nodes := addrs(startNodes(t, 5))
	last := uint64(0)
	// excludes has two clients take a lock from each other.
	excludes := func(clients ...*Driver) {
		t.Helper()
		for i, a := range clients {
			g, r, err := tryOf(t, a, "one")
			if err != nil {
				t.Fatalf("client %d: %v", i, err)
			}
			if g.Token <= last {
				t.Errorf("client %d has token %d after %d", i, g.Token, last)
			}
			last = g.Token
			for j, b := range clients {
				if _, _, err := tryOf(t, b, "one"); j != i && !errors.Is(err, driver.ErrHeld) {
					t.Fatalf("client %d beside client %d, which holds the lock: %v", j, i, err)
				}
			}
			if err := a.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
	three := mustOpen(t, "", nodes[:3]...)
	former := "former=" + strings.Join(nodes[:3], ",")
	both, more := mustOpen(t, former, nodes...), mustOpen(t, former, nodes...)
	excludes(three, both, more)
	excludes(mustOpen(t, "", nodes[:3]...), both) // a client of the former set can still be started
	five := mustOpen(t, "", nodes...)
	excludes(both, five, more, mustOpen(t, former, nodes...))
	isRefused(t, "", nodes[:3]...)
}

// Clients of both kinds contend at each step of a change, while a node that both lists name is away.
func TestSet_IsChanged_UnderContention(t *testing.T) {
	const rounds = 5
	nodes := startNodes(t, 5)
	all := addrs(nodes)
	former := "former=" + strings.Join(all[:3], ",")
	inside, last := make(chan struct{}, 1), uint64(0)
	contend := func(drivers ...*Driver) {
		t.Helper()
		var wait sync.WaitGroup
		for _, d := range drivers {
			c, err := interlock.New(d, nil)
			if err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				for range rounds {
					l, err := c.Lock(t.Context(), "one")
					if err != nil {
						t.Error(err)
						return
					}
					select {
					case inside <- struct{}{}:
					default:
						t.Error("two are inside")
					}
					if l.Token() <= last { // guarded by the lock, which the race detector checks
						t.Errorf("token %d after %d", l.Token(), last)
					}
					last = l.Token()
					<-inside
					if err := l.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
	}
	three := []*Driver{mustOpen(t, "", all[:3]...), mustOpen(t, "", all[:3]...)}
	both := []*Driver{mustOpen(t, former, all...), mustOpen(t, former, all...)}
	contend(slices.Concat(three, both)...)
	nodes[1].Stop()
	contend(slices.Concat(three, both)...)
	nodes[1].Cont()
	five := []*Driver{mustOpen(t, "", all...), mustOpen(t, "", all...)}
	contend(slices.Concat(both, five)...)
	nodes[1].Stop()
	contend(slices.Concat(both, five)...)
	nodes[1].Cont()
}

func TestSet_IsChangedWithClientsToo(t *testing.T) {
	clients := clientsOf(t, addrs(startNodes(t, 4)))
	first, err := New(clients[:3], &Options{NodeTimeout: nodeTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	d, err := New(clients[1:], &Options{NodeTimeout: nodeTimeout, Former: clients[:3]})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if len(d.nodes) != 4 || d.quorum != 3 {
		t.Errorf("%d nodes, %d are enough", len(d.nodes), d.quorum)
	}
	if _, _, err := tryOf(t, d, "one"); err != nil {
		t.Error(err)
	}
}

// The hold of a client that has lost its connections is not renewed by nodes which are of another set by now: a
// majority of the former set may be none of the current one.
func TestSet_ThatWasChanged_RenewsNoHoldOfTheFormerOne(t *testing.T) {
	servs := addrs(startNodes(t, 4))
	var proxies []*servers.Proxy
	var via []string
	for _, addr := range servs[:3] {
		p := servers.NewProxy(t, addr)
		proxies, via = append(proxies, p), append(via, p.Addr())
	}
	old := mustOpen(t, "", via...)
	o, renewed := renewals(2 * time.Second)
	c, err := interlock.New(old, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Lock(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	<-renewed
	mustOpen(t, "former="+strings.Join(servs[:3], ","), servs[1:]...)
	mustOpen(t, "", servs[1:]...)
	for _, p := range proxies {
		p.Reset()
	}
	select {
	case <-l.Lost():
	case <-time.After(patience):
		t.Error("the hold is renewed")
	}
}
