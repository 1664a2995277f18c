package redislock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// TestReplicas_WhatIsDone_IsOnThem has the only replica hang: a failover to it would undo what is done meanwhile, so
// nothing may be told as done. When it goes on, each call says what has become of it.
func TestReplicas_WhatIsDone_IsOnThem(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	d := open(t, soloOption(r.Primary.Addr()), &Options{
		Replicas: 1, ReplicaTimeout: 100 * time.Millisecond, Check: CheckNone,
	})
	lock := func(kind driver.Kind, name string) *driver.Request {
		t.Helper()
		r := &driver.Request{
			Key: driver.Key{Kind: kind, Name: name}, ID: name + "-id", Mode: driver.Exclusive, Weight: 1, Tokens: 1,
			Lease: time.Hour, Label: "a value",
		}
		var err error
		// Beside load a replica may be late.
		for range 100 {
			if _, err = d.Acquire(t.Context(), r); err == nil || !errors.Is(err, driver.ErrUnavailable) {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	kept, led := lock(driver.KindMutex, "kept"), lock(driver.KindElection, "led")
	token := func(key driver.Key) uint64 {
		t.Helper()
		info, err := d.Look(t.Context(), key)
		if err != nil || len(info.Holders) != 1 {
			t.Fatalf("%v: %v", info, err)
		}
		return info.Holders[0].Token
	}
	var broken []*driver.Request
	var tokens []uint64
	for _, kind := range []driver.Kind{driver.KindMutex, driver.KindElection} {
		r := lock(kind, "broken")
		broken, tokens = append(broken, r), append(tokens, token(r.Key))
	}
	latch := &driver.LatchCall{Key: driver.Key{Kind: driver.KindLatch, Name: "latch"}, ID: "set", Count: 1}
	if set, err := d.SetLatch(t.Context(), latch); err != nil || !set {
		t.Fatal(set, err)
	}
	calls := map[string]func() error{
		"a release that keeps the lock closed": func() error {
			return d.Release(t.Context(), &driver.Release{Key: kept.Key, ID: kept.ID, Keep: time.Hour})
		},
		"a release that keeps an election closed": func() error {
			return d.Release(t.Context(), &driver.Release{Key: led.Key, ID: led.ID, Keep: time.Hour})
		},
		"a break":                func() error { return d.Break(t.Context(), broken[0].Key, tokens[0]) },
		"a break of an election": func() error { return d.Break(t.Context(), broken[1].Key, tokens[1]) },
		"a look at a leader": func() error {
			_, err := d.Look(t.Context(), led.Key)
			return err
		},
		"the count of a latch": func() error {
			_, err := d.LatchCount(t.Context(), latch.Key)
			return err
		},
	}
	r.Replicas[0].Stop()
	for range 2 { // a repetition finds it done, which is no more known than before
		for name, call := range calls {
			if err := call(); !errors.Is(err, driver.ErrUnavailable) {
				t.Errorf("%s, which no replica has acknowledged: %v", name, err)
			}
		}
	}
	r.Replicas[0].Cont()
	for name, call := range calls {
		eventually(t, name+" is acknowledged", func() bool {
			err := call()
			if err != nil && !errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrLost) &&
				!errors.Is(err, driver.ErrNotHeld) {
				t.Fatalf("%s: %v", name, err)
			}
			return !errors.Is(err, driver.ErrUnavailable)
		})
	}
}

// What is read leaves nothing on the server, and what a server without memory cannot confirm is an error.
func TestReplicas_WhatIsRead_LeavesNothing_AndIsConfirmedOrAnError(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	d := open(t, soloOption(r.Primary.Addr()), &Options{
		Replicas: 1, ReplicaTimeout: patience, Check: CheckNone, // beside load a replica may be late
	})
	do := func(command ...string) any {
		t.Helper()
		answer, err := r.Primary.Do(t.Context(), command...)
		if err != nil {
			t.Fatal(command, err)
		}
		return answer
	}
	nobody := driver.Key{Kind: driver.KindElection, Name: "nobody leads"}
	done := driver.Key{Kind: driver.KindLatch, Name: "nothing to wait for"}
	read := func() (look, count error) {
		_, look = d.Look(t.Context(), nobody)
		_, count = d.LatchCount(t.Context(), done)
		return look, count
	}
	broken := func() error { return d.Break(t.Context(), driver.Key{Kind: driver.KindMutex, Name: "no lock"}, 1) }
	before := fmt.Sprint(do("INFO", "replication"))
	if look, count := read(); look != nil || count != nil {
		t.Fatal(look, count)
	}
	if err := broken(); !errors.Is(err, driver.ErrNotHeld) {
		t.Fatal(err)
	}
	if keys := do("KEYS", "*"); fmt.Sprint(keys) != "[]" {
		t.Errorf("reads have left %v", keys)
	}
	if offset := regexp.MustCompile(`master_repl_offset:\d+`); offset.FindString(before) ==
		offset.FindString(fmt.Sprint(do("INFO", "replication"))) {
		t.Error("reads have sent the replicas nothing that they could acknowledge")
	}

	led := &driver.Request{
		Key: driver.Key{Kind: driver.KindElection, Name: "led"}, ID: "led", Mode: driver.Exclusive, Weight: 1,
		Tokens: 1, Lease: time.Hour,
	}
	if _, err := d.Acquire(t.Context(), led); err != nil {
		t.Fatal(err)
	}
	counts := &driver.LatchCall{Key: driver.Key{Kind: driver.KindLatch, Name: "counts"}, ID: "set", Count: 1}
	if set, err := d.SetLatch(t.Context(), counts); err != nil || !set {
		t.Fatal(set, err)
	}
	name, slot := d.names.lock(led.Key)
	floor := do("GET", d.names.floor(slot))
	do("CONFIG", "SET", "maxmemory", "1")
	look, count := read()
	for what, err := range map[string]error{
		"that nobody leads": look, "that a latch is at zero": count, "that nobody has a lock": broken(),
	} {
		if !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%s, of which no replica was asked: %v", what, err)
		}
	}
	if info, err := d.Look(t.Context(), led.Key); err != nil || len(info.Holders) != 1 {
		t.Errorf("the leader: %+v, %v", info, err)
	}
	if left, err := d.LatchCount(t.Context(), counts.Key); err != nil || left != 1 {
		t.Errorf("a latch that counts: %d, %v", left, err)
	}
	if lasts := do("PTTL", name).(int64); lasts > time.Hour.Milliseconds() || lasts < time.Minute.Milliseconds() {
		t.Errorf("the lease of the leader lasts %d ms", lasts)
	}
	if err := d.Release(t.Context(), &driver.Release{Key: led.Key, ID: led.ID, Keep: time.Minute}); err != nil {
		t.Errorf("the release: %v", err)
	}
	if now := do("GET", d.names.floor(slot)); now != floor {
		t.Errorf("the floor was %v and is %v", floor, now)
	}
}

// That nothing was done is certain only if the replicas have the undo of what may have been done.
func TestReplicas_ARefusalAfterALostAnswer_IsCertainIfTheyHaveTheUndo(t *testing.T) {
	for acked, certain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &puppet{begin: time.Now(), listen: -1}
			asked := 0
			p.answer = func(c *Call) Reply {
				if c.Script != acquireScript {
					return Reply{Text: "ok", Acked: min(acked, c.Replicas)}
				}
				if asked++; asked == 1 {
					return Reply{Err: io.EOF}
				}
				return Reply{Text: fmt.Sprintf("H %d 0 0 %d 7 %d {}", p.at(p.begin), p.at(p.begin), p.at(p.begin))}
			}
			d, err := start(context.Background(), p, &Options{Replicas: 1, Check: CheckNone})
			if err != nil {
				t.Fatal(err)
			}
			r := puppetRequest()
			r.Try = true
			_, err = d.Acquire(context.Background(), r)
			if !errors.Is(err, driver.ErrHeld) || driver.IsDefinite(err) != certain {
				t.Errorf("%d replicas have the undo: %v", acked, err)
			}
			_ = d.Close()
			synctest.Wait()
		})
	}
}

// A plain release does not wait for the replicas. After a failover that has forgotten it, its client does it again.
func TestReplicas_WhatWasReleased_IsReleasedAgainAfterAReconnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{begin: time.Now(), listen: -1}
		var answers atomic.Pointer[Reply] // to releases
		answers.Store(&Reply{Text: "ok"})
		p.answer = func(c *Call) Reply {
			if c.Script == releaseScript {
				return *answers.Load()
			}
			return p.grants(c, 1, 1)
		}
		d, err := start(context.Background(), p, &Options{Replicas: 1, Check: CheckNone})
		if err != nil {
			t.Fatal(err)
		}
		r := puppetRequest()
		if _, err := d.Acquire(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		if err := d.Release(context.Background(), releaseOf(r)); err != nil {
			t.Fatal(err)
		}
		// released says how often the hold was released since the last look.
		seen := p.asked()
		released := func() (n int) {
			time.Sleep(2 * retry)
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, c := range p.calls[seen:] {
				if c.Script == releaseScript && c.Args[0] == r.ID {
					n++
				}
			}
			seen = len(p.calls)
			return n
		}
		if n := released(); n != 0 {
			t.Errorf("without a broken connection it is released %d times more", n)
		}
		answers.Store(&Reply{Err: errors.New("the server is away")})
		p.handler.Dropped(1)
		if n := released(); n == 0 {
			t.Error("it is not released again")
		}
		answers.Store(&Reply{Text: "lost expired"})
		if n := released(); n == 0 {
			t.Error("it is not repeated while the server is away")
		}
		if n := released(); n != 0 {
			t.Errorf("it is released %d times more when the server has answered", n)
		}
		time.Sleep(releasedLately)
		p.handler.Dropped(2)
		if n := released(); n != 0 {
			t.Errorf("after a minute it is released %d times more", n)
		}
		_ = d.Close()
		synctest.Wait()
	})
}

// A hold that is given up in the same step as another request is given up until the replicas have that too: after a
// failover it would be there again.
func TestReplicas_WhatIsGivenUp_IsGivenUpAgainUntilTheyHaveIt(t *testing.T) {
	give := &driver.Release{Key: puppetRequest().Key, ID: "before"}
	for name, begin := range map[string]func(d *Driver, parked func()){
		"by Requeue": func(d *Driver, parked func()) {
			r := puppetRequest()
			r.Waiting = func(*driver.HeldError) { parked() }
			_, _ = d.Requeue(context.Background(), give, r) // ends with the driver
		},
		"for a condition": func(d *Driver, parked func()) {
			_, _ = d.CondWait(context.Background(), give, puppetRequest(), parked)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppet{begin: time.Now(), listen: -1}
				var acked atomic.Int32
				var parked atomic.Bool
				p.answer = func(*Call) Reply {
					r := p.queue(1)
					r.Acked = int(acked.Load())
					return r
				}
				d, err := start(context.Background(), p, &Options{Replicas: 1, Check: CheckNone})
				if err != nil {
					t.Fatal(err)
				}
				go begin(d, func() { parked.Store(true) }) // ends with the driver
				// gives reports whether the latest call gives the hold up.
				gives := func() bool {
					time.Sleep(heartbeatEvery)
					synctest.Wait()
					p.mu.Lock()
					defer p.mu.Unlock()
					c := p.calls[len(p.calls)-1]
					return c.Script == requeueScript || c.Script == condWaitScript && c.Args[8] == "0"
				}
				for range 3 {
					if !gives() {
						t.Error("a heartbeat does not give up what the replicas still have")
					}
				}
				if name == "for a condition" && parked.Load() {
					t.Error("it was told that the hold is given up")
				}
				acked.Store(1)
				gives()
				if gives() || !parked.Load() {
					t.Error("what the replicas know is given up again")
				}
				_ = d.Close()
				synctest.Wait()
			})
		})
	}
}
