package interlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/interlocktest"
)

// recorder stands for a *testing.T and records what is reported to it.
type recorder struct {
	testing.TB
	cleanup []func()
	errors  []string
	fatal   string // why it was ended
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any)                 { r.stop(fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) { r.stop(fmt.Sprintf(format, args...)) }

func (r *recorder) stop(why string) {
	r.fatal = why
	runtime.Goexit()
}

// end runs what the test has registered, as the testing package does.
func (r *recorder) end() {
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		r.cleanup[i]()
	}
}

func TestStore_ALockThatIsNotGivenBack_IsAnErrorOfTheTest(t *testing.T) {
	for name, opts := range map[string]*interlocktest.Options{"": nil, "allowed": {MayStayHeld: true}} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			locks := interlocktest.New(r, opts).Client(&interlock.Options{ClientName: "web"})
			given, err := locks.Lock(t.Context(), "given back")
			if err != nil {
				t.Fatal(err)
			}
			if err := given.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			kept, err := locks.Mutex("kept", &interlock.LockOptions{Label: "import"}).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.end()
			if kept.Err() == nil {
				t.Error("the client was not closed")
			}
			said := strings.Join(r.errors, "\n")
			if opts != nil && said != "" {
				t.Errorf("got %s", said)
			}
			if opts == nil && (len(r.errors) != 1 || !strings.Contains(said, `mutex "kept"`) ||
				!strings.Contains(said, "client web") || !strings.Contains(said, `label "import"`)) {
				t.Errorf("got %s", said)
			}
		})
	}
}

// The line that the testing package shows is one of its own, so the report has that of the call.
func TestStore_ALockThatIsNotGivenBack_IsReportedWithTheCallThatTookIt(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, c *interlock.Client) error{
		"Lock": func(ctx context.Context, c *interlock.Client) error {
			_, err := c.Lock(ctx, "kept") // took it: Lock
			return err
		},
		"TryLock": func(ctx context.Context, c *interlock.Client) error {
			_, err := c.Mutex("kept", nil).TryLock(ctx) // took it: TryLock
			return err
		},
		"RLock": func(ctx context.Context, c *interlock.Client) error {
			_, err := c.RWMutex("kept", nil).RLock(ctx) // took it: RLock
			return err
		},
		"Multi": func(ctx context.Context, c *interlock.Client) error {
			_, err := c.Multi([]string{"kept", "other"}, nil).Lock(ctx) // took it: Multi
			return err
		},
		"a goroutine": func(ctx context.Context, c *interlock.Client) error {
			ended := make(chan error)
			go func() {
				_, err := c.Lock(ctx, "kept") // took it: a goroutine
				ended <- err
			}()
			return <-ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				told := 0
				locks := interlocktest.New(r, nil).Client(&interlock.Options{Observer: &interlock.Observer{
					Acquired: func(context.Context, interlock.Event) { told++ },
				}})
				if err := take(t.Context(), locks); err != nil {
					t.Fatal(err)
				}
				r.end()
				if len(r.errors) == 0 || told != len(r.errors) {
					t.Errorf("%d errors for %d holds", len(r.errors), told)
				}
				for _, said := range r.errors {
					want := "locked at store_test.go:" + lineOf(t, "// took it: "+name)
					if !strings.Contains(said, want) {
						t.Errorf("got %s, want %s", said, want)
					}
				}
			})
		})
	}
}

// lineOf returns the number of the line of this file that ends so.
func lineOf(t *testing.T, end string) string {
	t.Helper()
	text, err := os.ReadFile("store_test.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), end+"\n")
	return strconv.Itoa(strings.Count(before, "\n") + 1)
}

// Ending one hold may end others of its owner.
func TestStore_Lose_EndsHoldsOfOneOwnerThatEndTogether(t *testing.T) {
	store := interlocktest.New(t, nil)
	c := store.Client(nil)
	lock := c.RWMutex("doc", nil)
	reading, err := lock.UpgradeableRLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := reading.Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.Lose(interlock.KindRWMutex, "doc")
	<-reading.Lost()

	as := interlock.WithOwner(t.Context(), "ann")
	first, err := c.RWMutex("twice", nil).RLock(as)
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.Client(nil).RWMutex("twice", nil).RLock(as)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.RWMutex("twice", nil).RLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store.Lose(interlock.KindRWMutex, "twice")
	<-first.Lost()
	<-second.Lost()
	<-other.Lost()
}

// Work under a lock that is taken away must stop.
func TestStore_Lose_EndsTheWorkInside_AndLetsTheNextIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		worker, other := store.Client(nil), store.Client(nil)
		ended := make(chan error, 1)
		go func() {
			ended <- worker.Do(t.Context(), "import", func(ctx context.Context) error {
				<-ctx.Done() // as work that lasts
				return context.Cause(ctx)
			})
		}()
		synctest.Wait()
		store.Lose(interlock.KindMutex, "import")
		var lost *interlock.LostError
		if err := <-ended; !errors.As(err, &lost) || lost.Reason != interlock.LostBroken {
			t.Errorf("got %v", err)
		}
		lease, err := other.TryLock(t.Context(), "import")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Each client is a process of its own: a program that skips its work when another has the lock skips it here.
func TestStore_ClientsExcludeEachOther(t *testing.T) {
	store := interlocktest.New(t, nil)
	first, second := store.Client(nil), store.Client(nil)
	lease, err := first.Lock(t.Context(), "nightly")
	if err != nil {
		t.Fatal(err)
	}
	ran, err := second.Mutex("nightly", nil).TryDo(t.Context(), func(context.Context) error { return nil })
	if ran || err != nil {
		t.Errorf("got %v, %v", ran, err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStore_SetDown_FailsRequests_UntilTheEngineIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		locks := store.Client(nil)
		store.SetDown(true)
		if _, err := locks.TryLock(t.Context(), "x"); !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("while it is down: got %v", err)
		}
		store.SetDown(false)
		time.Sleep(time.Minute) // until what was asked has been taken back
		lease, err := locks.TryLock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A grant that came while the engine could not be reached is released once it can be reached again.
func TestStore_SetDown_LosesTheAnswerOfAWait_AndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		holder, waiter := store.Client(nil), store.Client(nil)
		lease, err := holder.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got := make(chan error, 1)
		go func() {
			_, err := waiter.Lock(ctx, "x")
			got <- err
		}()
		synctest.Wait()
		store.SetDown(true)
		store.Lose(interlock.KindMutex, "x") // which passes it on
		synctest.Wait()
		cancel()
		if err := <-got; err == nil {
			t.Error("a grant came from an engine that is down")
		}
		if err := lease.Unlock(t.Context()); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("got %v", err)
		}
		store.SetDown(false)
		time.Sleep(time.Minute)
		again, err := holder.TryLock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An hour of renewals takes no time; when they fail the holder is told before its lease ends.
func TestStore_FailRenewals_LosesTheHoldInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		lease, err := store.Client(&interlock.Options{Lease: 30 * time.Second}).Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		store.FailRenewals(true)
		began := time.Now()
		<-lease.Lost()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("told after %v", took)
		}
		var lost *interlock.LostError
		if !errors.As(lease.Err(), &lost) || lost.Reason != interlock.LostUnconfirmed {
			t.Errorf("got %v", lease.Err())
		}
	})
}

func TestStore_SetDelay_TakesItsTime_ButNotLongerThanTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		locks := store.Client(nil)
		store.SetDelay(time.Second)
		began := time.Now()
		lease, err := locks.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Lock took %v", took)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := locks.Lock(ctx, "y"); !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}
