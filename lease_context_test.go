package interlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

type valueKey struct{}

func TestCond_WithAContextOfTheHold_WaitsOn(t *testing.T) {
	for name, of := range map[string]func(t *testing.T, ctx context.Context, c *Client, l *Lease) context.Context{
		"its own": func(_ *testing.T, ctx context.Context, _ *Client, l *Lease) context.Context {
			return l.Context(ctx)
		},
		"one of one": func(_ *testing.T, ctx context.Context, _ *Client, l *Lease) context.Context {
			return l.Context(l.Context(ctx))
		},
		"with a value": func(_ *testing.T, ctx context.Context, _ *Client, l *Lease) context.Context {
			return context.WithValue(l.Context(ctx), valueKey{}, 1)
		},
		"under another's": func(t *testing.T, ctx context.Context, c *Client, l *Lease) context.Context {
			return mustLock(t, ctx, c, "b").Context(l.Context(ctx))
		},
		"above another's": func(t *testing.T, ctx context.Context, c *Client, l *Lease) context.Context {
			return l.Context(mustLock(t, ctx, c, "b").Context(ctx))
		},
		"cut off": func(_ *testing.T, ctx context.Context, _ *Client, l *Lease) context.Context {
			return context.WithoutCancel(l.Context(ctx))
		},
		"of a named owner": func(_ *testing.T, ctx context.Context, _ *Client, l *Lease) context.Context {
			return l.Context(WithOwner(ctx, "me"))
		},
		"one of its parent": func(_ *testing.T, ctx context.Context, _ *Client, _ *Lease) context.Context {
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told any
			o := &Observer{Acquired: func(ctx context.Context, _ Event) { told = ctx.Value(valueKey{}) }}
			bubble(t, &Options{Observer: o}, func(t *testing.T, c *Client, _ *hooks) {
				l := mustLock(t, t.Context(), c, "a")
				ctx := of(t, t.Context(), c, l)
				out := waitLater(ctx, c, l)
				mustSignal(t, c)
				next := woken(t, "who waits", out)
				if told != ctx.Value(valueKey{}) {
					t.Errorf("the Observer's context has the value %v", told)
				}
				if next.Owner() != l.Owner() {
					t.Errorf("owner %s, want %s", next.Owner(), l.Owner())
				}
				mustUnlock(t, next)
			})
		})
	}
}

func TestCond_WithAContextOfTheHold_EndsWithWhatThatWasMadeFrom(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		a := mustLock(t, t.Context(), c, "a")
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		if _, err := condOf(c).Wait(a.Context(ctx), a); !errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, ErrReleased) {
			t.Errorf("got %v", err)
		}
		l, b := mustLock(t, t.Context(), c, "x"), mustLock(t, t.Context(), c, "y")
		out := later(func() (*Lease, error) {
			return c.Cond(c.Mutex("x", nil)).Wait(b.Context(l.Context(t.Context())), l)
		})
		stillWaits(t, out, "before the signal")
		mustUnlock(t, b) // under which it waits
		if got := <-out; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		nothingIsWorkedOn(t, l)
	})
}

// nothingIsWorkedOn fails if l still remembers a context that Lease.Context made.
func nothingIsWorkedOn(t *testing.T, l *Lease) {
	t.Helper()
	synctest.Wait()
	shell.ClientOf(l.hold().Lock).Lock()
	defer shell.ClientOf(l.hold().Lock).Unlock()
	if l.hold().Listeners != nil && len(l.hold().Listeners.Contexts.All) > 0 {
		t.Errorf("%d contexts are left", len(l.hold().Listeners.Contexts.All))
	}
}

func TestCond_WithAContextOfAMulti_WaitsOn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		both, err := c.Multi([]string{"a", "b"}, nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := waitLater(both.Context(t.Context()), c, both.Leases()[0])
		mustSignal(t, c)
		mustUnlock(t, woken(t, "who waits", out))
		_ = both.Unlock(t.Context())
	})
}

// A context with an end of its own that was made from the hold's context ends with the hold. Wait cannot tell whether
// it would have ended by itself.
func TestCond_WithAContextMadeFromOneOfTheHold_SaysWhatToPass(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		ctx, cancel := context.WithTimeout(l.Context(t.Context()), time.Minute)
		defer cancel()
		_, err := condOf(c).Wait(ctx, l)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "pass the Lease's own") {
			t.Errorf("got %v", err)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a")) // nothing is held
	})
}

func TestCond_WhileCloseWaitsForSomethingPending_HoldsNothingAfterErrClosed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		over, err := mustLock(t, t.Context(), c, "b").Pending()
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		if _, err := condOf(c).Wait(t.Context(), l); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if l.Err() == nil {
			t.Error("after ErrClosed the hold lives on")
		}
		mustUnlock(t, must(t)(peer(t, h, nil).TryLock(t.Context(), "a")))
		over()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// When a parent of very many contexts ends, each of them comes with a goroutine of its own. If each took Machine.Mu,
// the client would stand still meanwhile.
func TestEndings_ThatEndTogether_TakeTheMutexForAll(t *testing.T) {
	const many = 1000
	var mu sync.Mutex
	var s core.Endings
	locks := 0
	all := make([]core.Ending, many)
	for i := range all {
		s.Add(&all[i])
	}
	kept := make([]*core.Ending, 0, many/2)
	lock := func() { mu.Lock(); locks++ }
	mu.Lock()
	var forgets sync.WaitGroup
	waits := make(chan int, many)
	for i := range all {
		if i%2 == 1 {
			kept = append(kept, &all[i])
			continue
		}
		forgets.Go(func() {
			s.Forget(&all[i], lock, mu.Unlock)
			waits <- i
		})
	}
	for range many/2 - 1 { // all but one return although the mutex is held
		<-waits
	}
	mu.Unlock()
	forgets.Wait()
	if most := many/2/core.AtOnce + 1; locks > most {
		t.Errorf("the mutex was taken %d times, want at most %d", locks, most)
	}
	left := s.Take()
	for _, w := range kept {
		if !slices.Contains(left, w) {
			t.Fatal("one that has not ended was forgotten")
		}
	}
	if len(left) != len(kept) {
		t.Errorf("%d are left, want %d", len(left), len(kept))
	}
	for _, w := range []*core.Ending{&all[0], &all[1]} { // taken, and over
		s.Forget(w, lock, mu.Unlock)
	}
	var late core.Ending
	s.Forget(&late, lock, mu.Unlock)
	if s.Add(&late); len(s.All) != 0 {
		t.Error("one that was over before it was added stays")
	}
}
