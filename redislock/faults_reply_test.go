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

// lostReply is a client whose server's replies can be lost, and another one beside it.
type lostReply struct {
	testing.TB
	server      *servers.RedisNode
	proxy       *servers.Proxy
	near, other *interlock.Client
	name        string
}

// of calls f, whose reply is lost when the server has changed the key of the lock.
func (r *lostReply) of(kind string, f func() error) error {
	r.Helper()
	key := "interlock:" + kind + ":" + r.name
	before := fmt.Sprint(mustDo(r, r.server, "DUMP", key))
	r.proxy.DropReplies()
	said := make(chan error, 1)
	go func() { said <- f() }() // ends within the patience of its context
	soon(r, "the server to do it", func() bool { return fmt.Sprint(mustDo(r, r.server, "DUMP", key)) != before })
	r.proxy.Reset()
	r.proxy.Pass()
	return receive(r, "the end of the call", said)
}

func (r *lostReply) must(l *interlock.Lease, err error) *interlock.Lease {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	return l
}

// A release was carried out and its reply was lost: asked again, the server finds no such hold and says that another
// owner is in. That is no loss.
func TestRelease_WhoseReplyIsLost_IsNoLoss(t *testing.T) {
	s := servers.RedisServer(t, nil)
	// The server must know the script: that it does not is an answer too, which is lost like others.
	known := openLocks(t, redisURL("redis", s.Addr()), nil)
	mustUnlock(t, mustLock(t, known, "known"))
	for name, run := range map[string]func(r *lostReply, ctx context.Context) error{
		"a mutex for which another waits": func(r *lostReply, ctx context.Context) error {
			held := r.must(r.near.Lock(ctx, r.name))
			watch := locktest.NewNews()
			waiter := openLocks(r, redisURL("redis", s.Addr()), &interlock.Options{Observer: watch.Observer()})
			in := make(chan error, 1)
			go func() { // ends with its context
				_, err := waiter.Lock(ctx, r.name)
				in <- err
			}()
			receive(r, "the waiter to be queued", watch.Queued)
			err := r.of("mutex", func() error { return held.Unlock(ctx) })
			if got := receive(r, "the waiter to get in", in); got != nil {
				r.Error(got)
			}
			return err
		},
		"a reader beside another": func(r *lostReply, ctx context.Context) error {
			held := r.must(r.near.RWMutex(r.name, nil).RLock(ctx))
			r.must(r.other.RWMutex(r.name, nil).RLock(ctx))
			return r.of("rw", func() error { return held.Unlock(ctx) })
		},
		"a permit beside its client's own": func(r *lostReply, ctx context.Context) error {
			held := r.must(r.near.Semaphore(r.name, 5, nil).Acquire(ctx, 1))
			r.must(r.near.Semaphore(r.name, 5, nil).Acquire(ctx, 1))
			return r.of("sem", func() error { return held.Unlock(ctx) })
		},
		"a named owner's second hold": func(r *lostReply, ctx context.Context) error {
			me := interlock.WithOwner(ctx, r.name)
			r.must(r.other.Lock(me, r.name))
			held := r.must(r.near.Lock(me, r.name))
			return r.of("mutex", func() error { return held.Unlock(ctx) })
		},
		"an upgraded hold": func(r *lostReply, ctx context.Context) error {
			held := r.must(r.near.RWMutex(r.name, nil).UpgradeableRLock(ctx))
			if err := held.Upgrade(ctx); err != nil {
				r.Fatal(err)
			}
			return r.of("rw", func() error { return held.Unlock(ctx) })
		},
		"a downgrade": func(r *lostReply, ctx context.Context) error {
			held := r.must(r.near.RWMutex(r.name, nil).UpgradeableRLock(ctx))
			if err := held.Upgrade(ctx); err != nil {
				r.Fatal(err)
			}
			if err := r.of("rw", func() error { return held.Downgrade(ctx) }); err != nil {
				return err
			}
			return held.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &lostReply{TB: t, server: s, proxy: servers.NewProxy(t, s.Addr()), name: name}
			o := &interlock.Options{LocalHandoffs: -1}
			r.near = openLocks(t, redisURL("redis", r.proxy.Addr()), o)
			r.other = openLocks(t, redisURL("redis", s.Addr()), o)
			if err := run(r, patient(t)); err != nil {
				t.Errorf("a healthy hold: %v", err)
			}
		})
	}
}

// A server that was restarted without its memory has forgotten all locks. Their holders hear of it when the client is
// connected again, long before they would have been renewed.
func TestRestart_ThatForgets_IsToldWithTheReconnection(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := openLocks(t, redisURL("redis", s.Addr()), &interlock.Options{Lease: time.Hour})
	var held []*interlock.Lease
	for i := range 300 { // more than one script renews
		held = append(held, mustLock(t, c, fmt.Sprint("x", i)))
	}
	s.Kill()
	s.Restart()
	for _, l := range held {
		receive(t, "the loss of "+l.Name(), l.Lost())
		if err := l.Err(); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
}
