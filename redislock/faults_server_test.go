package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestScriptFlush_InTheMidstOfTraffic_IsNotNoticed(t *testing.T) {
	t.Parallel()
	s := servers.RedisServer(t, nil)
	c := newCrowd(t, 4, 30, several(t, 4, redisURL("redis", s.Addr()), &interlock.Options{LocalHandoffs: -1})...)
	admin, err := s.Dial(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	flush := func() {
		if _, err := admin.Do(patient(t), "SCRIPT", "FLUSH", "SYNC"); err != nil {
			t.Error(err)
		}
	}
	during(t, 3*time.Millisecond, flush, func() { c.run(longrun.Of(24, 64)) })
	noneLeft(t, s)
}

func TestReset_EveryFewMilliseconds_EverybodyGetsInAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := servers.RedisServer(t, nil)
	r := newRand(t)
	o := &interlock.Options{Lease: 2 * time.Second}
	var proxies []*servers.Proxy
	var clients []*interlock.Client
	for range 4 {
		p := servers.NewProxy(t, s.Addr())
		proxies = append(proxies, p)
		clients = append(clients, openLocks(t, redisURL("redis", p.Addr()), o))
	}
	c := newCrowd(t, 3, 15, clients...)
	c.bumpy = true
	rested, last := 0, -1
	reset := func() {
		// On a busy machine no connection may last for long enough that anybody gets in. Then the network is good until
		// some have been in: all of a queue are to be served before they have waited for long enough to give up.
		if now := c.entries(); now != last {
			rested, last = 0, now
		} else if rested++; rested > 20 {
			rested = 0
			within(5*time.Second, func() bool { return c.entries() >= last+10 })
		}
		proxies[r.IntN(len(proxies))].Reset()
	}
	during(t, 4*time.Millisecond, reset, func() { c.run(48) })
	soon(t, "all locks to be free", func() bool {
		for range clients[0].List(patient(t), "") {
			return false
		}
		return true
	})
	noneLeft(t, s)
}

func TestClientKill_OfSubscribers_LosesNoWaiter(t *testing.T) {
	t.Parallel()
	s := servers.RedisServer(t, nil)
	c := newCrowd(t, 2, 12, several(t, 6, redisURL("redis", s.Addr()), &interlock.Options{LocalHandoffs: -1})...)
	c.bumpy = true
	kill := func() { mustDo(t, s, "CLIENT", "KILL", "TYPE", "pubsub") }
	begin := time.Now()
	during(t, 20*time.Millisecond, kill, func() { c.run(longrun.Of(12, 24)) })
	t.Logf("after %v", time.Since(begin))
	noneLeft(t, s)
}

func TestFlushAll_EveryHolderIsToldByItsNextRenewal(t *testing.T) {
	s := servers.RedisServer(t, nil)
	watch := locktest.NewNews()
	// The lease is so long that its end is not what tells them, should the machine stand still.
	o := &interlock.Options{Lease: faultsPatience, Renewal: 200 * time.Millisecond, Observer: watch.Observer()}
	c := openLocks(t, redisURL("redis", s.Addr()), o)
	clock := pace.Of(t, s)
	const holds = 20
	newest := uint64(0)
	for i := range holds {
		newest = max(newest, mustLock(t, c, fmt.Sprint("lock ", i)).Token())
	}
	begin := clock.Now()
	mustDo(t, s, "FLUSHALL")
	for range holds {
		if lost := receive(t, "a holder to be told", watch.Lost); lost.Reason != "expired" {
			t.Errorf("it was lost by %q", lost.Reason)
		}
	}
	told := clock.Now() - begin
	t.Logf("all were told after %v", told)
	if told > 2*time.Second {
		t.Errorf("the last was told only after %v, with a renewal each %v", told, o.Renewal)
	}
	other := openLocks(t, redisURL("redis", s.Addr()), nil)
	if l := mustLock(t, other, "lock 0"); l.Token() <= newest {
		t.Errorf("token %d after %d: the floor is gone, but not the clock", l.Token(), newest)
	}
}

// A server without room refuses new locks with a reason, and ends nobody's hold: renewals,
// releases and hand-offs go on.
func TestFullMemory_WithNoEviction_HoldersKeepTheirLocks(t *testing.T) {
	t.Parallel()
	s := servers.RedisServer(t, nil)
	watch := locktest.NewNews()
	o := &interlock.Options{Lease: faultsPatience, Renewal: 300 * time.Millisecond, Observer: watch.Observer()}
	c := openLocks(t, redisURL("redis", s.Addr()), o)
	var held []*interlock.Lease
	for i := range 10 {
		held = append(held, mustLock(t, c, fmt.Sprint("lock ", i)))
	}
	in := make(chan *interlock.Lease, 2)
	for range 2 { // two clients in a row behind lock 0
		next := openLocks(t, redisURL("redis", s.Addr()), o)
		go func() {
			l, err := next.Lock(patient(t), "lock 0")
			if err != nil {
				t.Errorf("a waiter: %v", err)
			}
			in <- l
		}()
		receive(t, "the waiter to be queued", watch.Queued)
	}
	mustDo(t, s, "CONFIG", "SET", "maxmemory", "1")
	for try, err := range map[string]error{
		"Lock":    second(c.Lock(patient(t), "new")),
		"TryLock": second(c.TryLock(patient(t), "new")),
	} {
		if err == nil || !strings.Contains(err.Error(), "OOM") || errors.Is(err, interlock.ErrHeld) {
			t.Errorf("%s on a full server: %v", try, err)
		}
		t.Logf("%s: %v", try, err)
	}
	awaitRenewals(t, watch, held, 4) // of the first the server may have been asked before
	for _, l := range held {
		if err := l.Err(); err != nil {
			t.Errorf("%q: %v", l.Name(), err)
		}
		mustUnlock(t, l)
	}
	for range 2 {
		l := receive(t, "a waiter to get in", in)
		if l == nil {
			return
		}
		mustUnlock(t, l)
	}
	mustDo(t, s, "CONFIG", "SET", "maxmemory", "0")
	mustUnlock(t, mustLock(t, c, "new"))
	noneLeft(t, s)
}

func TestEviction_IsReportedAtTheStart(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{
		Config: map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"},
	})
	var said bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&said, nil))
	c, err := interlock.Open(patient(t), redisURL("redis", s.Addr()), &interlock.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if got := said.String(); !strings.Contains(got, "allkeys-lru") || !strings.Contains(got, "level=ERROR") {
		t.Errorf("check=warn has logged %q", got)
	}
	_, err = interlock.Open(patient(t), withQuery(redisURL("redis", s.Addr()), "check", "refuse"), nil)
	if err == nil || !strings.Contains(err.Error(), "allkeys-lru") || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("check=refuse says %v", err)
	}
}

func TestSecured_ByTLSAPasswordAndALeastUser_EverythingWorks(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{TLS: true, Users: []string{"default off", "app " + leastUser(t)}})
	url := withQuery("rediss://app:s3cr3t@"+s.Addr(), "ca", s.CAFile())
	c := newCrowd(t, 2, 10, several(t, 3, url, nil)...)
	c.run(12)
	l := mustLock(t, c.clients[0], "held")
	if err := l.Extend(patient(t), time.Minute); err != nil {
		t.Error(err)
	}
	seen := 0
	for info, err := range c.clients[1].List(patient(t), "") {
		if err != nil || info.Name != "held" {
			t.Errorf("listed %+v: %v", info, err)
		}
		seen++
	}
	if err := c.clients[1].Break(patient(t), "mutex", "held", l.Token()); err != nil || seen != 1 {
		t.Errorf("listed %d locks; Break: %v", seen, err)
	}
	soon(t, "the holder to be told", func() bool { return l.Err() != nil })
	for what, wrong := range map[string]string{
		"a wrong password": strings.Replace(url, "s3cr3t", "hunter2", 1),
		"no password":      strings.Replace(url, "app:s3cr3t@", "", 1),
		"no TLS":           "redis://app:s3cr3t@" + s.Addr(),
		"no authority":     "rediss://app:s3cr3t@" + s.Addr(),
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		opened, err := interlock.Open(ctx, wrong, nil)
		cancel()
		if err == nil {
			_ = opened.Close()
			t.Errorf("with %s it opens", what)
		} else if said := err.Error(); strings.Contains(said, "s3cr3t") || strings.Contains(said, "hunter2") {
			t.Errorf("with %s the error shows the password: %v", what, err)
		}
	}
}

// leastUser returns the rights that the package documentation gives a user who locks.
func leastUser(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^//\s+ACL SETUSER app (.*?)\s+# locking$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("doc.go has no ACL SETUSER for locking")
	}
	return strings.Replace(string(found[1]), ">PASSWORD", ">s3cr3t", 1)
}

// A grant that was pushed into a connection that had just broken is not waited for until the next heartbeat, a second
// later: who has reconnected asks at once.
func TestReset_OfAWaitersConnection_IsRepairedAtOnce(t *testing.T) {
	s := servers.RedisServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	watch := locktest.NewNews()
	waiter := openLocks(t, redisURL("redis", p.Addr()), &interlock.Options{Observer: watch.Observer()})
	holder := openLocks(t, redisURL("redis", s.Addr()), nil)
	const rounds = 7
	clock := pace.Of(t, s)
	var took []time.Duration
	for range rounds {
		held := mustLock(t, holder, "lock")
		in := make(chan *interlock.Lease, 1)
		go func() {
			l, err := waiter.Lock(patient(t), "lock")
			if err != nil {
				t.Errorf("the waiter: %v", err)
			}
			in <- l
		}()
		receive(t, "the waiter to be queued", watch.Queued)
		p.Reset()
		begin := clock.Now()
		mustUnlock(t, held)
		l := receive(t, "the waiter to get in", in)
		took = append(took, clock.Now()-begin)
		if l == nil {
			return
		}
		mustUnlock(t, l)
	}
	slices.Sort(took)
	t.Logf("the waiter was in after %v", took)
	if took[rounds/2] > 400*time.Millisecond {
		t.Errorf("the waiter was in after %v: it has waited for its heartbeat", took)
	}
}
