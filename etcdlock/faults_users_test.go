package etcdlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// With users a server gives out a token for a password, and knows it no more when it was restarted, or when nobody has
// shown it for a while. A client that shows one which is not known has to log in again.

const password = "s3cret"

// userURL is etcdURL for the user root.
func userURL(hosts ...string) string {
	return "etcd://root:" + password + "@" + strings.Join(hosts, ",")
}

// settles has nodes write to their disks what they have done. What is not there is done again after a restart, a login
// too, and its token is known then.
func settles(t *testing.T, nodes ...*servers.EtcdNode) {
	t.Helper()
	for _, n := range nodes {
		do(t, n, "maintenance/hash", map[string]any{})
	}
}

func TestUsers_ServerRestart_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, &servers.EtcdOptions{Password: password})
	idle := openLocks(t, userURL(s.Addr()), &interlock.Options{Lease: brief})
	survives(t, userURL(s.Addr()), func() {
		settles(t, s)
		s.Restart()
	})
	held := mustLock(t, idle, "lock")
	<-time.After(2 * brief) // real: over several signs of life
	if err := held.Err(); err != nil {
		t.Errorf("a hold that was made after the restart: %v", err)
	}
	mustUnlock(t, held)
	noneLeft(t, s)
}

// While one member runs it knows the token, so all of them have to be restarted.
func TestUsers_AllMembersRestarted_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	c := servers.EtcdCluster(t, 3, &servers.EtcdOptions{Password: password})
	survives(t, userURL(c.Addrs()...)+slowElection, func() {
		settles(t, c.Nodes()...)
		c.Restart(t)
	})
	noneLeft(t, c.Leader(t))
}

// One after the other, so that at the end nobody knows the token that a client has shown all the time.
func TestUsers_MembersRestartedInTurn_HoldsAndWaitsGoOn(t *testing.T) {
	t.Parallel()
	c := servers.EtcdCluster(t, 3, &servers.EtcdOptions{Password: password})
	survives(t, userURL(c.Addrs()...)+slowElection, func() {
		for _, n := range c.Nodes() {
			settles(t, n)
			n.Restart()
		}
	})
	noneLeft(t, c.Leader(t))
}

// A restart that takes longer than a session costs the holds, which is told in time, and nothing else.
func TestUsers_OutageLongerThanTheSession_HoldsAreLostAndClientsGoOn(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, &servers.EtcdOptions{Password: password})
	p := servers.NewProxy(t, s.Addr())
	watch := newNews()
	a := openLocks(t, userURL(p.Addr()), &interlock.Options{Lease: brief})
	b := openLocks(t, userURL(s.Addr()), &interlock.Options{Lease: brief, Observer: watch.Observer()})
	held := mustLock(t, a, "lock")
	in := locking(t, b, "lock")
	receive(t, "the waiter to be queued", watch.Queued)
	settles(t, s)
	over := alarm(brief)
	s.Kill()
	receive(t, "the holder to be told", held.Lost())
	told := time.Now()
	if late := told.Sub(<-over); late > time.Second {
		t.Errorf("the holder was told %v after the end of its session", late)
	}
	if err := held.Err(); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the hold says %v", err)
	}
	s.Restart()
	l := receive(t, "the waiter to get in", in)
	if l == nil {
		t.FailNow() // locking has said why
	}
	if l.Token() <= held.Token() {
		t.Errorf("token %d after %d", l.Token(), held.Token())
	}
	mustUnlock(t, l)
	mustUnlock(t, mustLock(t, a, "lock"))
	if open, all := p.Connections(); open != 1 {
		t.Errorf("the client has %d connections now, of %d in all", open, all)
	}
	noneLeft(t, s)
}

// The token of a stream, and of a client that is idle, runs out. Signs of life are far apart here, so that nothing
// shows it meanwhile.
func TestUsers_TokenThatRanOut_IsReplaced(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, &servers.EtcdOptions{Password: password, Args: []string{"--auth-token-ttl", "2"}})
	watch := newNews()
	o := &interlock.Options{Lease: time.Hour, Observer: watch.Observer()}
	// a token may run out before it is shown, if the machine stands still
	url := userURL(s.Addr()) + "?request-timeout=15s"
	a, b := openLocks(t, url, o), openLocks(t, url, o)
	for range 2 {
		held := mustLock(t, a, "lock")
		mustUnlock(t, mustLock(t, b, "other"))
		// real: tokens live for two seconds after their last use, and are looked for each second
		<-time.After(4 * time.Second)
		in := locking(t, b, "lock")
		receive(t, "the waiter to be queued", watch.Queued)
		<-time.After(4 * time.Second) // real: as above, so that the token with which it watches is gone as well
		mustUnlock(t, held)
		mustUnlock(t, receive(t, "the waiter to get in", in))
	}
	noneLeft(t, s)
}
