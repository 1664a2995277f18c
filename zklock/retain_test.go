package zklock

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// renewal says that a hold is retained after so many passes, or that somebody has it.
func renewal(r *driver.Request, pass int, retained bool) driver.Renewal {
	return driver.Renewal{Key: r.Key, ID: r.ID, Pass: pass, Retained: retained}
}

// renew asks with the patience of ctx.
func renew(t testing.TB, d *Driver, r driver.Renewal) (err error) {
	t.Helper()
	d.Renew(bounded(t), []driver.Renewal{r}, func(_ int, said error) { err = said })
	return err
}

func mustRenew(t testing.TB, d *Driver, r driver.Renewal) {
	t.Helper()
	if err := renew(t, d, r); err != nil {
		t.Fatalf("Renew %+v: %v", r, err)
	}
}

// retained takes a lock and has it retained.
func retained(t testing.TB, d *Driver, name string) *driver.Request {
	t.Helper()
	r, _ := retaining(name)
	take(t, d, r)
	mustRenew(t, d, renewal(r, 0, true))
	return r
}

// seen returns the only holder of a lock.
func holderOf(t testing.TB, d *Driver, name string) driver.Holder {
	t.Helper()
	info, err := d.Look(bounded(t), mutex(name))
	if err != nil || len(info.Holders) != 1 {
		t.Fatalf("look at %q: %+v, %v", name, info, err)
	}
	return info.Holders[0]
}

// marks returns the nodes of a lock that are no requests.
func marks(a *admin, lock string) []string {
	return slices.DeleteFunc(a.nodes(lock), func(name string) bool {
		_, is := parseQueuePlace(name)
		return is
	})
}

func TestMark_IsNoRequest_AndShowsItsOwnAlone(t *testing.T) {
	const first, second = "w0a1-0000000001", "w0a2-0000000002"
	for _, name := range []string{idle + first, idle + "r0-0000000003", idle + "u0-0000000004"} {
		if _, ours := parseQueuePlace(name); ours {
			t.Errorf("%s counts as a request, also for earlier versions", name)
		}
	}
	all := inOrder([]string{second, idle + first, first, idle + "w9-0000000009"})
	if len(all) != 2 || !all[0].retained || all[1].retained {
		t.Errorf("the queue is %+v, want the first retained and the second not", all)
	}
	if got := markOf("/locks/mutex/a/" + first); got != "/locks/mutex/a/"+idle+first {
		t.Errorf("the mark is at %s", got)
	}
}

func TestRetained_GoesWithItsMark_InOneRelease(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, a := open(t, []string{n.Addr()}, &Options{Root: root}), newAdmin(t, n.Addr())
	lock := root + "/mutex/lock"
	r := retained(t, d, "lock")
	if h := holderOf(t, d, "lock"); !h.Retained || h.Owner != "" || h.Client != r.Client {
		t.Errorf("it is seen as %+v", h)
	}
	if got := marks(a, lock); len(got) != 1 {
		t.Errorf("the marks are %v", got)
	}
	give(t, d, r)
	if left := a.nodes(lock); len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
	if err := renew(t, d, renewal(r, 0, true)); !errors.Is(err, driver.ErrLost) {
		t.Errorf("a late renewal says %v", err)
	}
	if left := a.nodes(lock); len(left) > 0 {
		t.Errorf("a late renewal has left %v", left)
	}
}

// An operator may delete what he does not know.
func TestRetained_WhoseMarkIsGone_IsReleasedAllTheSame(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, a := open(t, []string{n.Addr()}, &Options{Root: root}), newAdmin(t, n.Addr())
	lock := root + "/mutex/lock"
	r := retained(t, d, "lock")
	if err := a.Delete(lock+"/"+marks(a, lock)[0], -1); err != nil {
		t.Fatal(err)
	}
	give(t, d, r)
	if left := a.nodes(lock); len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
}

func TestRetained_ThatEndsInAnotherWay_LeavesNoMark(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, a := open(t, []string{n.Addr()}, &Options{Root: root}), newAdmin(t, n.Addr())
	other := open(t, []string{n.Addr()}, &Options{Root: root})
	for name, end := range map[string]func(r *driver.Request, lock string){
		"broken": func(r *driver.Request, _ string) {
			if err := other.Break(bounded(t), r.Key, holderOf(t, d, r.Name).Token); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func(_ *driver.Request, lock string) {
			names := slices.DeleteFunc(a.nodes(lock), func(name string) bool { return strings.HasPrefix(name, idle) })
			if err := a.Delete(lock+"/"+names[0], -1); err != nil {
				t.Fatal(err)
			}
		},
		"requeued": func(r *driver.Request, _ string) {
			next := request(r.Name)
			if _, err := d.Requeue(bounded(t), release(r), next); err != nil {
				t.Fatal(err)
			}
			give(t, d, next)
		},
	} {
		lock := root + "/mutex/" + name
		end(retained(t, d, name), lock)
		soon(t, "the nodes of what was "+name+" to be gone", func() bool { return len(a.nodes(lock)) == 0 })
	}
}

// A mark must not outlive its hold, and a copy of its making that comes late, over an earlier connection, makes none.
func TestMark_OfAHoldThatIsGone_OrOverAnEarlierConnection_IsNotMade(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, a := open(t, []string{n.Addr()}, &Options{Root: root}), newAdmin(t, n.Addr())
	lock := root + "/mutex/lock"
	r, _ := retaining("lock")
	take(t, d, r)
	d.mu.Lock()
	l, e := d.session.link, d.entries[r.ID]
	d.mu.Unlock()
	earlier := &link{s: l.s, turn: l.turn, node: l.node, epoch: l.epoch + 1} // any that is not the latest
	if err := e.take(bounded(t)); err != nil {
		t.Fatal(err)
	}
	err := earlier.setMark(bounded(t), e, marked)
	e.give()
	if got := marks(a, lock); !errors.Is(err, errStale) || len(got) > 0 {
		t.Errorf("over an earlier connection: %v, and the marks are %v", err, got)
	}
	if err := a.Delete(lock+"/"+a.nodes(lock)[0], -1); err != nil {
		t.Fatal(err)
	}
	if err := renew(t, d, renewal(r, 0, true)); !errors.Is(err, driver.ErrLost) {
		t.Errorf("of a hold that is gone: %v", err)
	}
	if got := marks(a, lock); len(got) > 0 {
		t.Errorf("it has made the marks %v", got)
	}
}

// Whether the mark was made is found out over the next connection.
func TestRetained_WhoseReplyIsLost_IsShownAfterwards(t *testing.T) {
	x := newProtected(t)
	for _, drop := range []func(){x.p.DropReplies, func() { x.p.BlackHole(servers.ToServer) }} {
		r, _ := retaining("lock")
		take(t, x.d, r)
		listens(t, x.d, r)
		drop()
		said := make(chan error, 1)
		go func() { said <- renew(t, x.d, renewal(r, 0, true)) }()
		<-time.After(50 * time.Millisecond)
		x.reconnect()
		if err := receive(t, "the answer to a renewal", said); err != nil {
			t.Fatal(err)
		}
		if h := holderOf(t, x.d, "lock"); !h.Retained {
			t.Errorf("it is seen as %+v", h)
		}
		mustRenew(t, x.d, renewal(r, 1, false))
		if h := holderOf(t, x.d, "lock"); h.Retained || h.Owner != r.Owner {
			t.Errorf("after a take-over it is seen as %+v", h)
		}
		give(t, x.d, r)
	}
}

// While the server is to tell who asks, nobody has, so a client that retains much asks nothing.
func TestRenewal_OfWhatIsShown_SendsNothing(t *testing.T) {
	x := newProtected(t)
	r := retained(t, x.d, "lock")
	listens(t, x.d, r)
	x.p.BlackHole(servers.BothWays)
	var err error
	x.d.Renew(short(t), []driver.Renewal{renewal(r, 0, true)}, func(_ int, said error) { err = said })
	if err != nil {
		t.Errorf("without the server: %v", err)
	}
	x.p.Pass()
	give(t, x.d, r)
}
