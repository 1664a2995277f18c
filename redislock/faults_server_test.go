package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/servers"
)

// crowd has goroutines of several clients take a few locks again and again.
type crowd struct {
	t       *testing.T
	clients []*interlock.Client
	locks   []*inside
	rounds  int  // of each goroutine
	bumpy   bool // errors of a broken connection are to be expected
}

func newCrowd(t *testing.T, locks, rounds int, clients ...*interlock.Client) *crowd {
	c := &crowd{t: t, clients: clients, rounds: rounds}
	for i := range locks {
		c.locks = append(c.locks, newInside(t, fmt.Sprint("crowd ", i)))
	}
	return c
}

// run returns when everybody has been in as often as they were to be.
func (c *crowd) run(goroutines int) {
	c.t.Helper()
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for round := range c.rounds {
				if !c.once(c.clients[i%len(c.clients)], c.locks[(i+round)%len(c.locks)]) {
					return
				}
			}
		})
	}
	all.Wait()
	in := 0
	for _, l := range c.locks {
		in += l.count()
	}
	c.t.Logf("%d times somebody was in", in)
	if want := goroutines * c.rounds; !c.bumpy && in != want {
		c.t.Errorf("%d times somebody was in, want %d", in, want)
	}
}

// once takes the lock, however often that has to be tried, and reports whether it has.
func (c *crowd) once(client *interlock.Client, lock *inside) bool {
	ctx, cancel := context.WithTimeout(context.Background(), faultsPatience)
	defer cancel()
	for {
		l, err := client.Lock(ctx, lock.name)
		if err == nil {
			lock.enter(l)
			err = l.Unlock(ctx)
		}
		switch {
		case err == nil:
			return true
		case c.bumpy && ctx.Err() == nil && (errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrLost)):
			<-time.After(time.Millisecond)
		default:
			c.t.Errorf("%q: %v", lock.name, err)
			return false
		}
	}
}

// during calls disturb again and again, with pauses, while run runs.
func during(t *testing.T, pause time.Duration, disturb func(), run func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var disturber sync.WaitGroup
	times := 0
	disturber.Go(func() {
		for ctx.Err() == nil {
			disturb()
			times++
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
	run()
	cancel()
	disturber.Wait()
	t.Logf("disturbed %d times", times)
}

// several opens clients of the same engine.
func several(t testing.TB, n int, url string, o *interlock.Options) (all []*interlock.Client) {
	for range n {
		all = append(all, openLocks(t, url, o))
	}
	return all
}

func TestScriptFlush_InTheMidstOfTraffic_IsNotNoticed(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := newCrowd(t, 4, 30, several(t, 4, redisURL("redis", s.Addr()), &interlock.Options{LocalPasses: -1})...)
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
	during(t, 3*time.Millisecond, flush, func() { c.run(64) })
	noneLeft(t, s)
}

func TestReset_EveryFewMilliseconds_EverybodyGetsInAndNothingIsLeft(t *testing.T) {
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
	during(t, 4*time.Millisecond, func() { proxies[r.IntN(len(proxies))].Reset() }, func() { c.run(48) })
	soon(t, "all locks to be free", func() bool {
		for range clients[0].Locks(patient(t), "") {
			return false
		}
		return true
	})
	noneLeft(t, s)
}

func TestClientKill_OfSubscribers_LosesNoWaiter(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := newCrowd(t, 2, 12, several(t, 6, redisURL("redis", s.Addr()), &interlock.Options{LocalPasses: -1})...)
	c.bumpy = true
	kill := func() { mustDo(t, s, "CLIENT", "KILL", "TYPE", "pubsub") }
	begin := time.Now()
	during(t, 20*time.Millisecond, kill, func() { c.run(24) })
	t.Logf("after %v", time.Since(begin))
	noneLeft(t, s)
}

func TestFlushAll_EveryHolderIsToldByItsNextRenewal(t *testing.T) {
	s := servers.RedisServer(t, nil)
	watch := newWaits()
	o := &interlock.Options{Lease: 3 * time.Second, Renewal: 200 * time.Millisecond, Observer: watch.observer()}
	c := openLocks(t, redisURL("redis", s.Addr()), o)
	const holds = 20
	newest := uint64(0)
	for i := range holds {
		newest = max(newest, mustLock(t, c, fmt.Sprint("lock ", i)).Token())
	}
	begin := time.Now()
	mustDo(t, s, "FLUSHALL")
	for range holds {
		if lost := receive(t, "a holder to be told", watch.lost); lost.Reason != "expired" {
			t.Errorf("it was lost by %q", lost.Reason)
		}
	}
	told := time.Since(begin)
	t.Logf("all were told after %v", told)
	if told > 2*time.Second {
		t.Errorf("the last was told only after %v, with a renewal each %v", told, o.Renewal)
	}
	other := openLocks(t, redisURL("redis", s.Addr()), nil)
	if l := mustLock(t, other, "lock 0"); l.Token() <= newest {
		t.Errorf("token %d after %d: the floor is gone, but not the clock", l.Token(), newest)
	}
}

// A server without room refuses new locks with a reason, and ends nobody's hold: renewals, releases and hand-offs go on.
func TestFullMemory_WithNoEviction_HoldersKeepTheirLocks(t *testing.T) {
	s := servers.RedisServer(t, nil)
	watch := newWaits()
	o := &interlock.Options{Lease: 900 * time.Millisecond, Observer: watch.observer()}
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
		receive(t, "the waiter to be queued", watch.queued)
	}
	mustDo(t, s, "CONFIG", "SET", "maxmemory", "1")
	full := time.Now()
	for try, err := range map[string]error{
		"Lock":    second(c.Lock(patient(t), "new")),
		"TryLock": second(c.TryLock(patient(t), "new")),
	} {
		if err == nil || !strings.Contains(err.Error(), "OOM") || errors.Is(err, interlock.ErrHeld) {
			t.Errorf("%s on a full server: %v", try, err)
		}
		t.Logf("%s: %v", try, err)
	}
	for time.Since(full) < 3*o.Lease {
		receive(t, "a renewal", watch.renewed)
	}
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
	for info, err := range c.clients[1].Locks(patient(t), "") {
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
