package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// requestsFor makes a request for each name, each for so many tokens.
func requestsFor(prefix string, tokens int, names ...string) (rs []*driver.Request) {
	for _, name := range names {
		r := lockRequest(prefix+"-"+name, name)
		r.Tokens = tokens
		rs = append(rs, r)
	}
	return rs
}

func mustTakeAll(t *testing.T, d *Driver, rs []*driver.Request) []driver.Grant {
	t.Helper()
	gs, err := d.AcquireAll(t.Context(), rs)
	if err != nil || len(gs) != len(rs) {
		t.Fatalf("%d grants, %v", len(gs), err)
	}
	return gs
}

func mustRelease(t *testing.T, d *Driver, rs ...*driver.Request) {
	t.Helper()
	for _, r := range rs {
		if err := d.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNoLock fails if a key is left that is neither a floor nor a tombstone.
func wantNoLock(t *testing.T, s *servers.RedisNode, when string) {
	t.Helper()
	found, err := s.Do(t.Context(), "KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := found.([]any)
	for _, key := range keys {
		if name := fmt.Sprint(key); !strings.Contains(name, ":floor:{") && !strings.Contains(name, ":gone:{") {
			t.Errorf("%s: %s is left", when, name)
		}
	}
}

// TestAcquireAll_MintsAsAcquireDoes: in one slot, where a short block must not lower the floor that a long one has
// raised, and where the floor is ahead of the clock.
func TestAcquireAll_MintsAsAcquireDoes(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	for round := range 3 {
		x := fmt.Sprintf("{x%d}", round) // a slot whose floor is behind the clock
		rs := requestsFor("first", 50_000, x+"a", x+"b", "c")
		rs[1].Tokens = 1
		for i, r := range rs {
			r.ID += time.Now().Format("150405.000000") + fmt.Sprint(i)
		}
		first := mustTakeAll(t, d, rs)
		if first[0].Tokens < first[1].Tokens || first[1].Tokens != 1 || first[0].Token != first[1].Token {
			t.Errorf("granted %+v", first)
		}
		mustRelease(t, d, rs...)
		last := first[0].Token + uint64(first[0].Tokens) - 1
		for i, name := range []string{x + "b", x + "a"} {
			r := lockRequest(rs[i].ID+"-next", name)
			g, err := d.Acquire(t.Context(), r)
			if err != nil || g.Token <= last {
				t.Fatalf("%q: token %d after the block that ends with %d: %v", name, g.Token, last, err)
			}
			last = g.Token
			mustRelease(t, d, r)
		}
		again := requestsFor(rs[0].ID+"again", 10, x+"b", x+"a")
		_, slot := d.names.lock(again[0].Key)
		// as if blocks had run ahead of the clock, and the machine did not stand still until it is there
		last += 3_600_000_000
		if _, err := s.Do(t.Context(), "SET", d.names.floor(slot), fmt.Sprint(last)); err != nil {
			t.Fatal(err)
		}
		second := mustTakeAll(t, d, again)
		if second[0].Token <= last || second[1].Token <= last || second[0].Tokens != 1 || second[1].Tokens != 1 {
			t.Errorf("after token %d: granted %+v", last, second)
		}
		next := requestsFor(rs[0].ID+"next", 1, x+"c")
		if third := mustTakeAll(t, d, next); third[0].Token <= second[0].Token {
			t.Errorf("token %d of the slot after %d", third[0].Token, second[0].Token)
		}
		var held *driver.HeldError // the stored block is what was granted
		if err := d.Break(t.Context(), again[1].Key, second[1].Token+1); !errors.As(err, &held) ||
			held.Token != second[1].Token {
			t.Errorf("a break with the token behind a block of one: %v", err)
		}
		for info, err := range d.Locks(t.Context(), x+"a") {
			if err != nil || info.Holders[0].Token != second[1].Token || info.Holders[0].Owner != again[1].Owner {
				t.Errorf("listed: %+v, %v", info, err)
			}
		}
		mustRelease(t, d, append(again, next...)...)
	}
	wantNoLock(t, s, "in the end")
}

func TestAcquireAll_IsForAnonymousMutexesOfOneSlot(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	addrs := servers.RedisCluster(t, 3, 0, nil).Addrs()
	onCluster := open(t, rueidis.ClientOption{InitAddress: addrs}, nil)
	s := servers.RedisServer(t, nil)
	alone := open(t, soloOption(s.Addr()), nil)
	for name, row := range map[string]struct {
		d  *Driver
		rs func() []*driver.Request
		ok bool
	}{
		"OneSlotOfACluster": {onCluster, func() []*driver.Request {
			return requestsFor("a", 1, "{x}a", "{x}b", "{x}c")
		}, true},
		"TwoSlotsOfACluster": {onCluster, func() []*driver.Request {
			return requestsFor("b", 1, "{x}a", "{y}b")
		}, false},
		"AnyNamesOfOneServer": {alone, func() []*driver.Request { return requestsFor("c", 1, "a", "b", "c") }, true},
		"ANamedOwner": {alone, func() []*driver.Request {
			rs := requestsFor("d", 1, "a", "b")
			rs[1].Named = true
			return rs
		}, false},
		"ALockDelay": {alone, func() []*driver.Request {
			rs := requestsFor("e", 1, "a", "b")
			rs[0].LockDelay = 1
			return rs
		}, false},
		"AnElection": {alone, func() []*driver.Request {
			rs := requestsFor("f", 1, "a", "b")
			rs[0].Kind = driver.KindElection
			return rs
		}, false},
		"MoreThanAScriptIsToRun": {alone, func() []*driver.Request {
			return requestsFor("g", 1, manyNames(mostTogether+1)...)
		}, false},
		"AsManyAsAScriptRuns": {alone, func() []*driver.Request {
			return requestsFor("h", 1, manyNames(mostTogether)...)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			rs := row.rs()
			_, err := row.d.AcquireAll(t.Context(), rs)
			if row.ok && err != nil || !row.ok && (!errors.Is(err, driver.ErrUnsupported) || !driver.IsDefinite(err)) {
				t.Fatalf("got %v", err)
			}
			if row.ok {
				mustRelease(t, row.d, rs...)
			}
		})
	}
	wantNoLock(t, s, "in the end")
}

func manyNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("name-", i))
	}
	return names
}

// TestAcquireAll_LeavesToAcquireWhatItCannotJudge: a holder and a queue that have died, whose key lives on; and what a
// later version has written.
func TestAcquireAll_LeavesToAcquireWhatItCannotJudge(t *testing.T) {
	s := servers.RedisServer(t, nil)
	a, b, dead := open(t, soloOption(s.Addr()), nil), open(t, soloOption(s.Addr()), nil), open(t, soloOption(s.Addr()),
		nil)
	holder := lockRequest("holder", "b")
	holder.Lease = time.Second
	if _, err := a.Acquire(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	left, err := waiting(gone, dead, lockRequest("dead", "b"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.AcquireAll(t.Context(), requestsFor("try", 1, "a", "b"))
	leave() // its heartbeats end, its place stays
	<-left
	for errors.Is(err, driver.ErrHeld) { // until the lease has ended
		<-time.After(10 * time.Millisecond)
		_, err = b.AcquireAll(t.Context(), requestsFor("try", 1, "a", "b"))
	}
	if !errors.Is(err, driver.ErrUnsupported) || !driver.IsDefinite(err) {
		t.Errorf("a lock whose holder has died: %v", err)
	}
	if n, _ := s.Do(t.Context(), "EXISTS", "interlock:mutex:a"); fmt.Sprint(n) != "0" {
		t.Errorf("the other lock was taken: %v", n)
	}
	if _, err := s.Do(t.Context(), "SET", "interlock:mutex:c", "2 of a later version"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AcquireAll(t.Context(), requestsFor("new", 1, "a", "c")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a lock of a later version: %v", err)
	}
}

func TestAcquireAll_WithoutMemory_TakesNothing(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	rs := requestsFor("a", 1, "a", "b", "c")
	mustTakeAll(t, d, rs)
	mustRelease(t, d, rs...)
	if _, err := s.Do(t.Context(), "CONFIG", "SET", "maxmemory", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.AcquireAll(t.Context(), requestsFor("b", 1, "a", "b", "c")); err == nil ||
		!strings.Contains(err.Error(), "OOM") {
		t.Errorf("got %v", err)
	}
	wantNoLock(t, s, "after a refusal")
}

// TestAcquireAll_TellsOfABreak_TheHoldThatIsBroken and no other.
func TestAcquireAll_TellsOfABreak_TheHoldThatIsBroken(t *testing.T) {
	addr := servers.Redis(t)
	d, operator := open(t, soloOption(addr), nil), open(t, soloOption(addr), nil)
	rs := requestsFor("a", 1, "a", "b", "c")
	told := make(chan string, len(rs))
	for _, r := range rs {
		r.Lost = func(reason driver.LostReason, _ error) { told <- r.Name + " " + string(reason) }
	}
	gs := mustTakeAll(t, d, rs)
	if err := operator.Break(t.Context(), rs[1].Key, gs[1].Token); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-told:
		if got != "b broken" {
			t.Errorf("told: %s", got)
		}
	case <-time.After(patience):
		t.Fatal("not told")
	}
	mustRelease(t, d, rs[0], rs[2])
	if len(told) > 0 {
		t.Errorf("told of %d more", len(told))
	}
}
