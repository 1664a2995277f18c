package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

// mute is a Conn that hears no recall, or only the later ones.
type mute struct {
	*rueidisconn.Conn
	lost chan struct{} // has a place for each that is lost
}

func (c *mute) Start(ctx context.Context, channel string, h Handler) error {
	return c.Conn.Start(ctx, channel, muted{h, c.lost})
}

// muted is the handler of such a Conn.
type muted struct {
	Handler
	lost chan struct{}
}

func (h muted) Pushed(l Link, channel, message string) {
	if strings.HasPrefix(message, "W ") {
		select {
		case h.lost <- struct{}{}:
			return
		default: // enough
		}
	}
	h.Handler.Pushed(l, channel, message)
}

// openMute returns a driver to whose process the first recalls are lost.
func openMute(t *testing.T, o rueidis.ClientOption, recalls int) *Driver {
	t.Helper()
	d, err := start(t.Context(), &mute{rueidisconn.New(dial(t, o), true), make(chan struct{}, recalls)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// opened is a driver for the time of the test.
func opened(t *testing.T, o rueidis.ClientOption) *Driver {
	t.Helper()
	d := open(t, o, nil)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// retaining is a request whose client may keep the lock, and what is sent to when another wants it.
func retaining(id string, key driver.Key) (*driver.Request, chan struct{}) {
	r, wanted := lockRequest(id, key.Name), make(chan struct{}, 100)
	r.Key, r.Retains = key, true
	r.Wanted = func() {
		select {
		case wanted <- struct{}{}:
		default: // nobody counts so far
		}
	}
	return r, wanted
}

// holding has d hold the lock.
func holding(t *testing.T, d *Driver, r *driver.Request) driver.Grant {
	t.Helper()
	g, err := d.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// isWanted waits until a holder has heard that another wants its lock.
func isWanted(t *testing.T, what string, wanted <-chan struct{}) {
	t.Helper()
	select {
	case <-wanted:
	case <-time.After(15 * time.Second):
		t.Fatalf("%s: the holder does not hear of it", what)
	}
}

// wantHeld fails unless err says that another holds the lock, and whether it may be retained.
func wantHeld(t *testing.T, what string, err error, retains bool) {
	t.Helper()
	var held *driver.HeldError
	if !errors.As(err, &held) || held.Retains != retains || held.Client != "test" {
		t.Errorf("%s: got %+v (%v), want one that retains: %v", what, held, err, retains)
	}
}

func trying(id string, key driver.Key) *driver.Request {
	r := lockRequest(id, key.Name)
	r.Key, r.Try = key, true
	return r
}

func TestRecall_WhoeverAsks_HasTheHolderTold(t *testing.T) {
	solo, cluster := soloOption(servers.Redis(t)), clusterOption(servers.RedisCluster(t, 3, 0, nil))
	for name, o := range map[string]rueidis.ClientOption{"alone": solo, "in a Cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			for i, kind := range []driver.Kind{driver.KindMutex, driver.KindElection, driver.KindRWMutex} {
				t.Run(string(kind), func(t *testing.T) {
					key := driver.Key{Kind: kind, Name: fmt.Sprint("recalled ", i)}
					a, b := opened(t, o), opened(t, o)
					r, wanted := retaining("holder", key)
					g := holding(t, a, r)
					_, err := b.Acquire(t.Context(), trying("try", key))
					wantHeld(t, "a try", err, true)
					isWanted(t, "a try", wanted)

					for n := range 2 { // the second finds a queue
						waits := lockRequest(fmt.Sprint("waits ", n), key.Name)
						waits.Key, waits.ID = key, fmt.Sprint("waits", n)
						if _, err := waiting(t.Context(), b, waits); err != nil {
							t.Fatal(err)
						}
						isWanted(t, "a wait", wanted)
					}
					if err := a.Break(t.Context(), key, g.Token); err != nil {
						t.Errorf("a break: %v", err)
					}
				})
			}
		})
	}
}

func TestRecall_ByARequestForSeveralLocks_IsToldToEachHolder(t *testing.T) {
	o := soloOption(servers.Redis(t))
	a, b := opened(t, o), opened(t, o)
	var held []chan struct{}
	var asks []*driver.Request
	for _, name := range []string{"x", "y"} {
		r, wanted := retaining("holder-of-"+name, lockRequest("", name).Key)
		holding(t, a, r)
		held, asks = append(held, wanted), append(asks, lockRequest("asks-for-"+name, name))
	}
	_, err := b.AcquireAll(t.Context(), append(asks, lockRequest("free", "z")))
	wantHeld(t, "a request for all", err, true)
	for _, wanted := range held {
		isWanted(t, "a request for all", wanted)
	}
}

// Who is granted the lock by a push, or by a requeue, is told as everybody.
func TestRecall_OfAHoldThatCameByAPushOrARequeue_IsTold(t *testing.T) {
	for name, o := range map[string]rueidis.ClientOption{
		"alone": soloOption(servers.Redis(t)), "in a Cluster": clusterOption(servers.RedisCluster(t, 3, 0, nil)),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := opened(t, o), opened(t, o)
			key := lockRequest("", "lock").Key
			first, _ := retaining("first", key)
			second, byPush := retaining("second", key)
			third, byRequeue := retaining("third", key)
			holding(t, a, first)
			done, err := waiting(t.Context(), b, second)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(a.Release(t.Context(), releaseOf(first)), <-done); err != nil {
				t.Fatal(err)
			}
			_, err = a.Acquire(t.Context(), trying("try", key))
			wantHeld(t, "a try", err, true)
			isWanted(t, "after a push", byPush)
			if _, err := b.Requeue(t.Context(), releaseOf(second), third); err != nil {
				t.Fatal(err)
			}
			_, err = a.Acquire(t.Context(), trying("try-again", key))
			wantHeld(t, "a try", err, true)
			isWanted(t, "after a requeue", byRequeue)
		})
	}
}

// The push of the request itself is lost. Nobody renews: only the heartbeat is left.
func TestRecall_ThatIsLost_IsRepeatedByTheHeartbeatOfWhoWaits(t *testing.T) {
	o := soloOption(servers.Redis(t))
	a, b := openMute(t, o, 1), opened(t, o)
	r, wanted := retaining("holder", lockRequest("", "lock").Key)
	holding(t, a, r)
	begin := time.Now()
	if _, err := waiting(t.Context(), b, lockRequest("waits", "lock")); err != nil {
		t.Fatal(err)
	}
	isWanted(t, "a heartbeat", wanted)
	if took := time.Since(begin); took < mostClaim/4 {
		t.Errorf("it was told after %v, and not by a heartbeat", took)
	}
}

// No push gets through, and hearing of it does not depend on the mark then.
func TestRecall_ThatIsLost_IsTheAnswerToARenewal(t *testing.T) {
	for _, o := range []rueidis.ClientOption{
		soloOption(servers.Redis(t)), clusterOption(servers.RedisCluster(t, 3, 0, nil)),
	} {
		a, b := openMute(t, o, 1000), opened(t, o)
		for _, retains := range []bool{true, false} {
			r, wanted := retaining(fmt.Sprint("holder-", retains), lockRequest("", fmt.Sprint("lock ", retains)).Key)
			r.Retains = retains
			holding(t, a, r)
			renew := func() {
				t.Helper()
				if err := renewOne(t.Context(), a, renewalOf(r, r.Lease)); err != nil {
					t.Fatal(err)
				}
			}
			renew()
			if _, err := waiting(t.Context(), b, lockRequest(fmt.Sprint("waits-", retains), r.Name)); err != nil {
				t.Fatal(err)
			}
			if len(wanted) > 0 {
				t.Errorf("retains: %v: told of it before it was asked", retains)
			}
			renew()
			isWanted(t, "a renewal", wanted)
		}
	}
}

func TestRecall_BeforeTheGrantIsKnown_IsToldOnceAfterIt(t *testing.T) {
	d := opened(t, soloOption(servers.Redis(t)))
	r, wanted := retaining("id", lockRequest("", "lock").Key)
	e, err := d.enter(r)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		(*listener)(d).Pushed(1, d.channel, "W id 1")
	}
	if n := len(wanted); n != 0 {
		t.Errorf("told %d times of what it does not know yet", n)
	}
	if err := d.hold(r.ID, e); err != nil {
		t.Fatal(err)
	}
	if n := len(wanted); n != 1 {
		t.Errorf("told %d times", n)
	}
	(*listener)(d).Pushed(1, d.channel, "W id 2")
	(*listener)(d).Pushed(1, d.channel, "W another 2")
	if n := len(wanted); n != 2 {
		t.Errorf("told %d times, want twice", n)
	}
}
