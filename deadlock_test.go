package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
)

// holdThen locks first and, at the given instant from now, second with the same owner. It gives back what it has when
// done.
func holdThen(t *testing.T, ctx context.Context, c *Client, first, second string, at time.Duration) <-chan error {
	t.Helper()
	l := mustLock(t, ctx, c, first)
	out := make(chan error, 1)
	go func() {
		time.Sleep(at) // virtual
		inner, err := c.Lock(l.Context(ctx), second)
		if err == nil {
			err = inner.Unlock(ctx)
		}
		out <- errors.Join(err, l.Unlock(context.WithoutCancel(ctx)))
	}()
	return out
}

func TestDeadlock_OfTwoOwners_IsTold_AndTheOtherGetsOn(t *testing.T) {
	resting(t, func(t *testing.T, c, _ *Client) {
		start := time.Now()
		one := holdThen(t, t.Context(), c, "a", "b", second)
		two := holdThen(t, t.Context(), c, "b", "a", 2*second)
		err := <-two // it came last
		if !errors.Is(err, ErrDeadlock) || errors.Is(err, ErrHeld) {
			t.Fatalf("got %v", err)
		}
		for _, says := range []string{
			`lock "a": deadlock`, `waits for "a", held by owner `,
			`, who waits for "b", held by owner `,
		} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q does not say %q", err, says)
			}
		}
		if took := time.Since(start); took > 2*second+3*shell.SearchAfter {
			t.Errorf("found after %v", took)
		}
		if err := <-one; err != nil {
			t.Errorf("the other: %v", err)
		}
	})
}

func TestDeadlock_OfThreeOwners_AndOfNamedOnes(t *testing.T) {
	for _, named := range []bool{false, true} {
		bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
			as := func(name string) context.Context {
				if named {
					return WithOwner(t.Context(), name)
				}
				return t.Context()
			}
			all := []<-chan error{
				holdThen(t, as("A"), c, "a", "b", 3*second), holdThen(t, as("B"), c, "b", "c", second),
				holdThen(t, as("C"), c, "c", "a", 2*second),
			}
			err := <-all[0]
			if !errors.Is(err, ErrDeadlock) || named && !strings.Contains(err.Error(), `owner A waits for "b", `+
				`held by owner B, who waits for "c", held by owner C, who waits for "a", held by owner A`) {
				t.Fatalf("named %v: got %v", named, err)
			}
			for _, other := range all[1:] {
				if err := <-other; err != nil {
					t.Errorf("named %v: another: %v", named, err)
				}
			}
		})
	}
}

// One goroutine of an owner waits within a cycle, another for a lock that its holder will give back. The owner is not
// stuck: the second may then give back what others wait for.
func TestDeadlock_IsNotTold_WhileOneWaitOfAnOwnerMayEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		busy := mustLock(t, t.Context(), c, "busy")
		a := mustLock(t, t.Context(), c, "a")
		mine := a.Context(t.Context())
		two := holdThen(t, t.Context(), c, "b", "a", 0) // waits for the owner of a
		synctest.Wait()
		stuck := lockLater(context.WithoutCancel(mine), c, "b") // and so a cycle
		works := lockLater(context.WithoutCancel(mine), c, "busy")
		time.Sleep(time.Hour) // virtual
		select {
		case o := <-stuck:
			t.Fatalf("told %v", o.err)
		case err := <-two:
			t.Fatalf("the other was told %v", err)
		default:
		}
		mustUnlock(t, busy)
		mustUnlock(t, (<-works).lease)
		mustUnlock(t, a) // what only this goroutine could know
		if err := <-two; err != nil {
			t.Error(err)
		}
		mustUnlock(t, (<-stuck).lease)
	})
}

// The same for an owner with a name, whose other wait is by another client.
func TestDeadlock_IsNotTold_WhileAWaitByAnotherClientMayEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		busy := mustLock(t, t.Context(), other, "busy")
		mine := WithOwner(t.Context(), "A")
		a := mustLock(t, mine, c, "a")
		two := holdThen(t, t.Context(), c, "b", "a", 0)
		synctest.Wait()
		stuck, works := lockLater(mine, c, "b"), lockLater(mine, other, "busy")
		time.Sleep(time.Hour) // virtual
		stillWaits(t, stuck, "while its owner may get on")
		stillWaits(t, two, "while the other may get on")
		mustUnlock(t, busy)
		mustUnlock(t, (<-works).lease)
		mustUnlock(t, a)
		if err := <-two; err != nil {
			t.Error(err)
		}
		mustUnlock(t, (<-stuck).lease)
	})
}

func TestDeadlock_IsNotTold_OfALongLine(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		last := mustLock(t, t.Context(), c, "4")
		away := mustLock(t, t.Context(), other, "5")
		var all []<-chan error
		for i := range 3 {
			all = append(all, holdThen(t, t.Context(), c, fmt.Sprint(i+1), fmt.Sprint(i+2), time.Duration(3-i)*second))
		}
		all = append(all, holdThen(t, t.Context(), c, "6", "5", second))
		time.Sleep(time.Minute) // virtual: all wait, nobody for himself
		mustUnlock(t, last)
		mustUnlock(t, away)
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		c.in().Lock()
		searching := c.in().Deadlocks.At < trust.Never
		c.in().Unlock()
		if time.Sleep(second); searching { // virtual
			c.in().Lock()
			defer c.in().Unlock()
			if c.in().Deadlocks.At < trust.Never {
				t.Error("it searches although nobody waits")
			}
		}
	})
}

// TestDeadlock_InRandomHistories has owners take several locks in random orders, one after the other. They give all
// back when they are told of a deadlock, so all must end. Owners that keep one order must be told of none.
func TestDeadlock_InRandomHistories(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()} {
		for _, ordered := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed=%d,ordered=%v", seed, ordered), func(t *testing.T) {
				bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
					var deadlocks int
					var mu sync.Mutex // guards deadlocks
					var all sync.WaitGroup
					for n := range uint64(8) {
						random := rand.New(rand.NewPCG(seed, n))
						ctx := t.Context()
						if n%4 == 0 {
							ctx = WithOwner(ctx, fmt.Sprint("owner ", n))
						}
						all.Go(func() {
							for range 20 {
								if tangle(t, ctx, c, random, ordered) {
									mu.Lock()
									deadlocks++
									mu.Unlock()
								}
							}
						})
					}
					all.Wait()
					t.Logf("%d deadlocks", deadlocks)
					if ordered == (deadlocks > 0) {
						t.Errorf("%d deadlocks", deadlocks)
					}
				})
			})
		}
	}
}

// tangle takes some locks one within the other, and reports whether there was a deadlock.
func tangle(t *testing.T, ctx context.Context, c *Client, random *rand.Rand, ordered bool) bool {
	names := random.Perm(5)[:2+random.IntN(2)]
	if ordered {
		names = []int{random.IntN(2), 2, 3 + random.IntN(2)}
	}
	var takes []taking
	for _, name := range names {
		takes = append(takes, func(ctx context.Context) (*Lease, error) { return c.Lock(ctx, fmt.Sprint(name)) })
	}
	return tangleThese(t, ctx, takes, random)
}
