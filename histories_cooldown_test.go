package interlock

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Random MinHold and LockDelay, in virtual time: nobody may get in too early.

// TestRests_InRandomHistories has several clients take one lock with random MinHold and LockDelay, and release or lose
// it. Nobody may get in before the time that the holder before asked for is over.
func TestRests_InRandomHistories(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			resting(t, func(t *testing.T, c, other *Client) {
				random := rand.New(rand.NewPCG(seed, 0))
				var closed time.Time // until then nobody may get in; written by who is inside
				var all sync.WaitGroup
				for i := range 6 {
					own, by := rand.New(rand.NewPCG(seed, random.Uint64())), []*Client{c, other}[i%2]
					all.Go(func() {
						for range 15 {
							restOnce(t, by, own, &closed)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func restOnce(t *testing.T, c *Client, random *rand.Rand, closed *time.Time) {
	seconds := func(n int) time.Duration { return time.Duration(random.IntN(n)) * second }
	o := &LockOptions{MinHold: seconds(4)}
	if c.in().Traits.Lifetime == driver.Leases {
		o.LockDelay = seconds(4)
	}
	loses := random.IntN(3) == 0
	if loses {
		o.MaxHold = second + seconds(2)
	}
	l, err := c.Mutex("a", o).Lock(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	now := time.Now()
	if now.Before(*closed) {
		t.Errorf("let in %v early", closed.Sub(now))
	}
	*closed = now.Add(o.MinHold)
	if loses {
		*closed = maxTime(*closed, now.Add(o.MaxHold+o.LockDelay))
		<-l.Lost()
		return
	}
	time.Sleep(seconds(3)) // virtual
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestRests_OfSharedLocksToo(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		kept := &LockOptions{MinHold: 20 * second}
		for name, lock := range map[string]func(c *Client, o *LockOptions) (*Lease, error){
			"write": func(c *Client, o *LockOptions) (*Lease, error) { return c.RWMutex("rw", o).Lock(t.Context()) },
			"permits": func(c *Client, o *LockOptions) (*Lease, error) {
				return c.Semaphore("sem", 2, o).Acquire(t.Context(), 2)
			},
		} {
			l, err := lock(c, kept)
			if err != nil {
				t.Fatal(err)
			}
			end := time.Now().Add(20 * second)
			mustUnlock(t, l)
			next, err := lock(other, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantAt(t, end, name)
			mustUnlock(t, next)
			if c.in().Traits.Lifetime != driver.Leases {
				continue
			}
			if l, err = lock(c, &LockOptions{LockDelay: 20 * second, MaxHold: second}); err != nil {
				t.Fatal(err)
			}
			<-l.Lost()
			end = time.Now().Add(20 * second)
			if next, err = lock(other, nil); err != nil {
				t.Fatal(err)
			}
			wantAt(t, end, name+" after a loss")
			mustUnlock(t, next)
		}
		// A read that is kept lets other readers in.
		l, err := c.RWMutex("reads", kept).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		mustUnlock(t, l)
		if l, err = other.RWMutex("reads", nil).RLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantAt(t, start, "another reader")
		mustUnlock(t, l)
		if l, err = other.RWMutex("reads", nil).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantAt(t, start.Add(20*second), "a writer")
		mustUnlock(t, l)
	})
}
