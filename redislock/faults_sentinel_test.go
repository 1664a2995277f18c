package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// failoverLease is longer than a failover takes: a second until the primary counts as down, and the election, which on
// a machine under load may come to nothing at first.
const failoverLease = 40 * time.Second

// afterFailover is the bound for who waits when there is a new primary: a heartbeat of at most a second and a renewal
// of the connection, on a machine that is busy.
const afterFailover = 12 * time.Second

func TestSentinel_Failover(t *testing.T) {
	t.Run("LocksThatWereReplicated_AreHeldAcross_AndWaitersGetIn", func(t *testing.T) {
		t.Parallel()
		heldAcross(t)
	})
	t.Run("AGrantThatWasLost_IsToldAndItsTokenIsOld", func(t *testing.T) {
		t.Parallel()
		lostGrant(t)
	})
	t.Run("WaitingForReplicas_NoGrantIsLost", func(t *testing.T) {
		t.Parallel()
		noLostGrant(t, func(s *servers.SentinelRedis) { s.KillPrimary() })
	})
	t.Run("WaitingForReplicas_AnOldPrimaryThatComesBackGrantsNothing", func(t *testing.T) {
		t.Parallel()
		noLostGrant(t, func(s *servers.SentinelRedis) {
			old := s.Primary()
			old.Stop()
			s.AwaitFailover(old)
			old.Cont()
		})
	})
}

func heldAcross(t *testing.T) {
	s := servers.RedisSentinel(t, 1, nil)
	watch := locktest.NewNews()
	o := &interlock.Options{Lease: failoverLease, Renewal: time.Second, Observer: watch.Observer()}
	c, other := openLocks(t, sentinelURL(s), o), openLocks(t, sentinelURL(s), o)
	var held []*interlock.Lease
	for i := range 20 {
		held = append(held, mustLock(t, c, fmt.Sprint("lock ", i)))
	}
	w := locktest.NewInside(t, "lock 0")
	w.Enter(held[0])
	in := make(chan *interlock.Lease, 1)
	go func() {
		l, err := other.Lock(veryPatient(t), w.Name)
		if err != nil {
			t.Errorf("the waiter: %v", err)
		} else {
			w.Enter(l)
		}
		in <- l
	}()
	receive(t, "the waiter to be queued", watch.Queued)
	s.AwaitReady() // the replica has everything
	begin := time.Now()
	old := s.Primary()
	old.Kill()
	dead := time.Now()
	s.AwaitFailover(old)
	t.Logf("the new primary was in office after %v", time.Since(begin))
	for _, l := range held {
		soon(t, "each hold to be renewed at the new primary", func() bool {
			return l.Err() != nil ||
				time.Until(l.Deadline()) > failoverLease-2*time.Second && time.Since(dead) > 2*time.Second
		})
		if err := l.Err(); err != nil {
			t.Errorf("a hold was lost: %v", err)
		}
		_, err := other.TryLock(patient(t), l.Name())
		if !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("another's try: %v", err)
		}
	}
	t.Logf("all were renewed after %v", time.Since(begin))
	unlocked := time.Now()
	for _, l := range held {
		mustUnlock(t, l)
	}
	if l := receive(t, "the waiter to get in", in); l != nil {
		t.Logf("the waiter was in %v after the unlock", time.Since(unlocked))
		mustUnlock(t, l)
	}
	for i, l := range held { // tokens go on growing
		again := mustLock(t, other, l.Name())
		if again.Token() <= l.Token() {
			t.Errorf("lock %d: token %d after %d", i, again.Token(), l.Token())
		}
		mustUnlock(t, again)
	}
	noneLeft(t, s.Primary())
}

// cutOff makes the replica follow nobody, without anybody noticing at once.
func cutOff(t testing.TB, replica *servers.RedisNode) {
	t.Helper()
	nowhere, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(nowhere.Addr().String())
	t.Cleanup(func() { _ = nowhere.Close() })
	mustDo(t, replica, "REPLICAOF", host, port)
}

func lostGrant(t *testing.T) {
	s := servers.RedisSentinel(t, 1, nil)
	watch := locktest.NewNews()
	o := &interlock.Options{Lease: failoverLease, Renewal: 500 * time.Millisecond, Observer: watch.Observer()}
	c, other := openLocks(t, sentinelURL(s), o), openLocks(t, sentinelURL(s), &interlock.Options{Lease: failoverLease})
	mustUnlock(t, mustLock(t, c, "lock"))
	s.AwaitReady()
	old := s.Primary()
	replica := s.Nodes()[0]
	if replica == old {
		replica = s.Nodes()[1]
	}
	cutOff(t, replica)
	var token uint64
	for range 50 { // several, so that the floor is further on than what the replica knows
		l := mustLock(t, c, "lock")
		token = l.Token()
		mustUnlock(t, l)
	}
	held := mustLock(t, c, "lock")
	if held.Token() <= token {
		t.Errorf("token %d after %d", held.Token(), token)
	}
	work := held.Context(context.Background())
	guard := &mark{}
	stamp, _ := held.Stamp()
	if !guard.lets(stamp) {
		t.Error("a fence refuses the first holder")
	}
	old.Kill()
	dead := time.Now()
	s.AwaitFailover(old)
	begin := time.Now()
	t.Logf("the new primary was in office after %v", begin.Sub(dead))
	lost := receive(t, "the holder to be told", watch.Lost)
	t.Logf("the holder was told after %v: %v", time.Since(begin), lost)
	if !errors.Is(held.Err(), interlock.ErrLost) || lost.Reason == "" || lost.Token != held.Token() {
		t.Errorf("it was told %+v, and Err is %v", lost, held.Err())
	}
	receive(t, "the work's context to end", work.Done())
	if cause := context.Cause(work); !errors.Is(cause, interlock.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
	next := mustLock(t, other, "lock")
	if next.Token() <= held.Token() {
		t.Errorf("token %d after %d, which the new primary never saw", next.Token(), held.Token())
	}
	fresh, _ := next.Stamp()
	if !guard.lets(fresh) {
		t.Errorf("a fence refuses the new holder, %v after %v", fresh, stamp)
	}
	if guard.lets(stamp) {
		t.Errorf("a fence lets the old holder pass, %v after %v", stamp, fresh)
	}
	if time.Since(begin) > afterFailover {
		t.Errorf("it took %v", time.Since(begin))
	}
}

// mark is a resource that remembers who was newest.
type mark struct{ newest fence.Stamp }

func (m *mark) lets(s fence.Stamp) bool {
	if s.Token < m.newest.Token || s.Token == m.newest.Token && s.Nonce != m.newest.Nonce && m.newest.Nonce != "" {
		return false
	}
	m.newest = s
	return true
}

// noLostGrant has clients contend while the primary is replaced. Never are two inside, and
// everybody gets in afterwards.
func noLostGrant(t *testing.T, failover func(s *servers.SentinelRedis)) {
	s := servers.RedisSentinel(t, 1, nil)
	url := withQuery(withQuery(sentinelURL(s), "replicas", "1"), "replica-timeout", "200ms")
	clients := several(t, 6, url, &interlock.Options{Lease: 3 * time.Second, LocalHandoffs: -1})
	w := locktest.NewInside(t, "lock")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	var in atomic.Int64
	for _, c := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				l, err := c.Lock(ctx, w.Name)
				if err != nil {
					<-time.After(5 * time.Millisecond)
					continue
				}
				w.Enter(l)
				in.Add(1)
				if in.Load()%3 == 0 { // some stay for a while, so that a failover meets holders
					<-time.After(5 * time.Millisecond)
				}
				_ = l.Unlock(ctx)
			}
		})
	}
	soon(t, "some to get in", func() bool { return in.Load() > 30 })
	old := s.Primary()
	failover(s)
	before := in.Load()
	t.Logf("%d were in before the failover", before)
	// A grant waits for the replica, which is the old primary once it is back.
	if !old.Alive() {
		s.RestartDead()
	}
	begin := time.Now()
	if !within(2*faultsPatience, func() bool { return in.Load() > before+30 }) {
		t.Errorf("only %d got in after the failover", in.Load()-before)
	}
	t.Logf("30 got in %v after both servers were there again", time.Since(begin))
	cancel()
	all.Wait()
	if n := w.Entries(); n < 60 {
		t.Errorf("only %d times somebody was in", n)
	}
}
