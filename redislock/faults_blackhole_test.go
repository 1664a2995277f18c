package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// directions are the ways in which a cable can be cut.
var directions = map[string]servers.Direction{
	"BothWays": servers.BothWays, "RequestsOnly": servers.ToServer, "RepliesOnly": servers.ToClient,
}

// The overlap is 0 ms: when the next owner's Lock returns, the holder has been told in every way that there is.
func TestBlackHole_BeforeTheHolder_ItIsOutBeforeTheNextIsIn(t *testing.T) {
	s := servers.RedisServer(t, nil)
	for name, direction := range directions {
		for _, waitsBefore := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/WaiterBefore=%v", name, waitsBefore), func(t *testing.T) {
				t.Parallel()
				for i := range 3 {
					b := &blackHole{t: t, s: s, direction: direction, waitsBefore: waitsBefore}
					b.try(fmt.Sprintf("%s %d", t.Name(), i))
				}
			})
		}
	}
}

// blackHole is one repetition.
type blackHole struct {
	t           testing.TB
	s           *servers.RedisNode
	direction   servers.Direction
	waitsBefore bool
}

// try repeats what was measured too late: this process may have stood still between two instants. (That two were in by
// their own word is no such measurement, and fails at once.)
func (b *blackHole) try(name string) {
	for try := 0; ; try++ {
		late := b.once(fmt.Sprintf("%s.%d", name, try))
		if late == "" {
			return
		}
		if try == 3 {
			b.t.Errorf("four times in a row, the last time: %s", late)
			return
		}
		b.t.Logf("once more: %s", late)
	}
}

// once returns what the holder had not been told when the next was in.
func (b *blackHole) once(name string) (late string) {
	t := b.t
	proxy := servers.NewProxy(t, b.s.Addr())
	watch := locktest.NewNews()
	lease := &interlock.Options{Lease: 600 * time.Millisecond, CloseTimeout: time.Millisecond}
	holder := openLocks(t, redisURL("redis", proxy.Addr()), lease)
	defer holder.Close()
	next := openLocks(t, redisURL("redis", b.s.Addr()), &interlock.Options{Observer: watch.Observer()})
	defer next.Close()

	held := mustLock(t, holder, name)
	work := held.Context(context.Background())
	lost := held.Lost()
	told := make(chan time.Time, 1)
	go func() { // ends with the loss, which comes
		<-lost
		told <- time.Now()
	}()
	type entry struct {
		lease *interlock.Lease
		at    time.Time
		late  string // what the holder had not been told

		trusted bool // the holder trusted its lease still
	}
	in := make(chan entry, 1)
	enter := func() {
		l, err := next.Lock(patient(t), name)
		e := entry{lease: l, at: time.Now()}
		if err != nil {
			e.late = err.Error()
		} else {
			e.late = notTold(work, lost)
			_, stamped := held.Stamp()
			e.trusted = stamped || held.Err() == nil
		}
		in <- e
	}
	if b.waitsBefore {
		go enter()
		select {
		case <-watch.Queued:
		case e := <-in: // the lease was over before
			if e.lease != nil {
				mustUnlock(t, e.lease)
			}
			return "The waiter had nobody to wait for. "
		case <-time.After(faultsPatience):
			t.Fatal("the waiter was not queued")
		}
		proxy.BlackHole(b.direction)
	} else {
		proxy.BlackHole(b.direction)
		go enter()
	}
	e := receive(t, "the next to get in", in)
	at := receive(t, "the holder to be told", told)
	if e.lease == nil {
		t.Fatalf("the next did not get in: %s", e.late)
	}
	if e.trusted {
		t.Errorf("two are in, by their own word")
	}
	if held.Token() >= e.lease.Token() {
		t.Errorf("token %d is in after %d", e.lease.Token(), held.Token())
	}
	if ended := held.Deadline(); ended.After(e.at) { // which after a loss is when it was noticed
		e.late += fmt.Sprintf("The loss was noticed %v after the next was in. ", ended.Sub(e.at))
	}
	var reason *interlock.LostError
	// the server has said so before the network was cut
	if is := errors.As(held.Err(), &reason); is && reason.Reason == "expired" {
		e.late += "The lease was over before. "
	} else if !is || reason.Reason != "unconfirmed" {
		t.Errorf("the holder has lost it by %v", held.Err())
	}
	proxy.Pass() // what was held up arrives now
	mustUnlock(t, e.lease)
	// its lease is short
	if err := mustLock(t, holder, name).Unlock(patient(t)); err != nil && !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the first holder, again: %v", err)
	}
	t.Logf("the holder was told %v before the next was in", e.at.Sub(at))
	if at.After(e.at) {
		e.late += fmt.Sprintf("Who waits for Lost was told %v after the next was in.", at.Sub(e.at))
	}
	return e.late
}

// notTold says what of a loss has not been told yet. It is asked before Err, which looks at the clock, and tells.
func notTold(work context.Context, lost <-chan struct{}) (late string) {
	select {
	case <-lost:
	default:
		late += "Lost is open. "
	}
	if work.Err() == nil {
		late += "The work's context goes on. "
	}
	return late
}

// A waiter that cannot be told that it is its turn costs the others a claim; a push that comes late is not believed.
func TestBlackHole_BeforeAWaiter_TheNextGetsInAndALatePushIsNotBelieved(t *testing.T) {
	s := servers.RedisServer(t, nil)
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("PassesAgainBeforeTheNextUnlocks=%v", late), func(t *testing.T) {
			t.Parallel()
			lateWaiter(t, s, late)
		})
	}
}

func lateWaiter(t *testing.T, s *servers.RedisNode, late bool) {
	proxy := servers.NewProxy(t, s.Addr())
	watch := locktest.NewNews()
	o := &interlock.Options{Observer: watch.Observer()} // with leases that outlast a machine that stands still
	near := openLocks(t, redisURL("redis", s.Addr()), o)
	far := openLocks(t, redisURL("redis", proxy.Addr()), o)
	third := openLocks(t, redisURL("redis", s.Addr()), o)
	name := t.Name()
	w := locktest.NewInside(t, name)
	first := mustLock(t, near, name)
	w.Enter(first)
	farIn, thirdIn := make(chan *interlock.Lease, 1), make(chan *interlock.Lease, 1)
	wait := func(c *interlock.Client, in chan *interlock.Lease) {
		go func() {
			if l, err := c.Lock(patient(t), name); err != nil {
				t.Errorf("a waiter: %v", err)
				in <- nil
			} else {
				w.Enter(l)
				in <- l
			}
		}()
		receive(t, "a waiter to be queued", watch.Queued)
	}
	wait(far, farIn)
	wait(third, thirdIn)
	proxy.BlackHole(servers.BothWays)
	begin := time.Now()
	mustUnlock(t, first)
	l := receive(t, "the one behind to get in", thirdIn)
	t.Logf("the one behind the waiter that is gone was in after %v", time.Since(begin))
	if l == nil {
		return
	}
	if !late {
		mustUnlock(t, l)
		proxy.Pass()
	} else {
		proxy.Pass() // the push arrives while the third is in
		select {
		case <-farIn:
			t.Error("two are in")
		case <-time.After(300 * time.Millisecond):
		}
		mustUnlock(t, l)
	}
	if l := receive(t, "the waiter that was gone to get in", farIn); l != nil {
		mustUnlock(t, l)
	}
	noneLeft(t, s)
}
