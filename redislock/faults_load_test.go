package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
)

// crowd has goroutines of several clients take a few locks again and again.
type crowd struct {
	t       *testing.T
	clients []*interlock.Client
	locks   []*locktest.Inside
	rounds  int  // of each goroutine
	bumpy   bool // errors of a broken connection are to be expected
}

func newCrowd(t *testing.T, locks, rounds int, clients ...*interlock.Client) *crowd {
	c := &crowd{t: t, clients: clients, rounds: rounds}
	for i := range locks {
		c.locks = append(c.locks, locktest.NewInside(t, fmt.Sprint("crowd ", i)))
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
	in := c.entries()
	c.t.Logf("%d times somebody was in", in)
	if want := goroutines * c.rounds; !c.bumpy && in != want {
		c.t.Errorf("%d times somebody was in, want %d", in, want)
	}
}

// entries returns how many times somebody was in.
func (c *crowd) entries() (n int) {
	for _, l := range c.locks {
		n += l.Entries()
	}
	return n
}

// once takes the lock, however often that has to be tried, and reports whether it has.
func (c *crowd) once(client *interlock.Client, lock *locktest.Inside) bool {
	ctx, cancel := context.WithTimeout(context.Background(), faultsPatience)
	defer cancel()
	for {
		l, err := client.Lock(ctx, lock.Name)
		if err == nil {
			lock.Enter(l)
			err = l.Unlock(ctx)
		}
		switch {
		case err == nil:
			return true
		case c.bumpy && ctx.Err() == nil &&
			(errors.Is(err, interlock.ErrUnavailable) || errors.Is(err, interlock.ErrLost)):
			<-time.After(time.Millisecond)
		default:
			c.t.Errorf("%q: %v", lock.Name, err)
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
