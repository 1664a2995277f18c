package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// line is a process whose goroutines stand in line for one lock, of which the first asks the server for all.
type line struct {
	t     *testing.T
	c     *interlock.Client
	watch *locktest.News
}

func newLine(t *testing.T, s *servers.RedisNode) *line {
	watch := locktest.NewNews()
	return &line{t, openLocks(t, redisURL("redis", s.Addr()), &interlock.Options{Observer: watch.Observer()}), watch}
}

// locked is how a Lock has ended.
type locked struct {
	lease *interlock.Lease
	err   error
}

// lock locks m in a goroutine, and returns when that waits.
func (n *line) lock(ctx context.Context, m *interlock.Mutex) <-chan locked {
	n.t.Helper()
	ended := make(chan locked, 1)
	go func() { // ends with the lock, or with ctx
		l, err := m.Lock(ctx)
		ended <- locked{l, err}
	}()
	receive(n.t, "a wait to be queued", n.watch.Queued)
	return ended
}

// in waits for a Lock that is to end well, and unlocks it.
func (n *line) in(who string, ended <-chan locked) {
	n.t.Helper()
	got := receive(n.t, who, ended)
	if got.err != nil {
		n.t.Fatalf("%s: %v", who, got.err)
	}
	mustUnlock(n.t, got.lease)
}

func TestLeader_ThatGivesUp_LeavesThePlaceToWhoStandsBehindIt(t *testing.T) {
	s := servers.RedisServer(t, nil)
	holder, here, there := newLine(t, s), newLine(t, s), newLine(t, s)
	for range 10 {
		held := mustLock(t, holder.c, "a")
		ctx, cancel := context.WithCancel(context.Background())
		leader := here.lock(ctx, here.c.Mutex("a", nil))
		behind := here.lock(patient(t), here.c.Mutex("a", nil))
		elsewhere := there.lock(patient(t), there.c.Mutex("a", nil))
		cancel()
		if got := receive(t, "the cancelled Lock to return", leader); !errors.Is(got.err, context.Canceled) {
			t.Fatalf("the cancelled Lock says %v", got.err)
		}
		mustUnlock(t, held)
		first := receive(t, "who stood behind the leader to get in", behind)
		if first.err != nil {
			t.Fatal(first.err)
		}
		select {
		case got := <-elsewhere:
			t.Fatalf("another process, which came last, is in beside or before it: %+v", got)
		default:
		}
		mustUnlock(t, first.lease)
		there.in("the other process to get in", elsewhere)
	}
	noneLeft(t, s)
}

func TestLeader_OfAnOwnerThatGotInElsewhere_StopsAsking(t *testing.T) {
	s := servers.RedisServer(t, nil)
	holder, here := newLine(t, s), newLine(t, s)
	o := mustLock(t, here.c, "owner") // its context is of one owner, which two goroutines share
	held := mustLock(t, holder.c, "a")
	other := &interlock.LockOptions{Lease: 20 * time.Second} // so it has a line of its own
	inFront := here.lock(o.Context(context.Background()), here.c.Mutex("a", other))
	leader := here.lock(o.Context(context.Background()), here.c.Mutex("a", nil))
	behind := here.lock(patient(t), here.c.Mutex("a", nil))
	mustUnlock(t, held)
	a := receive(t, "the owner to get in", inFront)
	b := receive(t, "its other goroutine to get in as well", leader)
	if a.err != nil || b.err != nil {
		t.Fatal(a.err, b.err)
	}
	select {
	case got := <-behind:
		t.Fatalf("another owner is in beside it: %+v", got)
	default:
	}
	mustUnlock(t, a.lease)
	mustUnlock(t, b.lease)
	here.in("who stood behind the leader to get in", behind)
	mustUnlock(t, o)
	noneLeft(t, s)
}
