package interlock

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// panicky returns an Observer whose function of that name panics with errBug.
func panicky(which string) *Observer {
	on := func(name string) func(Event) {
		return func(Event) {
			if name == which {
				panic(errBug)
			}
		}
	}
	with := func(name string) func(context.Context, Event) {
		return func(_ context.Context, e Event) { on(name)(e) }
	}
	return &Observer{
		Waiting: with("Waiting"), Acquired: with("Acquired"), Upgraded: with("Upgraded"), Failed: with("Failed"),
		Renewed: on("Renewed"), RenewalFailed: on("RenewalFailed"), Lost: on("Lost"), Released: on("Released"),
		Retained: on("Retained"), RetentionEnded: on("RetentionEnded"), Recalled: on("Recalled"),
		Settling: on("Settling"), Settled: on("Settled"),
	}
}

var errBug = errors.New("a bug of the program")

// isBug reports whether recovered is errBug.
func isBug(recovered any) bool {
	err, is := recovered.(error)
	return is && errors.Is(err, errBug)
}

// panicOf returns what f panics with, or nil.
func panicOf(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// records is a slog handler that keeps what is logged.
type records struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }

func (r *records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	r.all = append(r.all, text)
	return nil
}

// count returns how many records have that level.
func (r *records) count(level string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.all {
		if strings.HasPrefix(text, level+" ") {
			n++
		}
	}
	return n
}

func (r *records) has(parts ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.all {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(text, part)
		}
		if all {
			return true
		}
	}
	return false
}

func TestObserver_ThatPanicsWhenALockIsAcquired_LeavesNothingHeld(t *testing.T) {
	for name, acquire := range map[string]func(ctx context.Context, c *Client){
		"Lock":    func(ctx context.Context, c *Client) { _, _ = c.Lock(ctx, "a") },
		"TryLock": func(ctx context.Context, c *Client) { _, _ = c.TryLock(ctx, "a") },
		"Do": func(ctx context.Context, c *Client) {
			_ = c.Do(ctx, "a",
				func(context.Context) error { return nil })
		},
		"MinHold": func(ctx context.Context, c *Client) {
			_, _ = c.Mutex("a", &LockOptions{MinHold: time.Hour}).Lock(ctx)
		},
		"RLock":    func(ctx context.Context, c *Client) { _, _ = c.RWMutex("a", nil).RLock(ctx) },
		"Acquire":  func(ctx context.Context, c *Client) { _, _ = c.Semaphore("a", 2, nil).Acquire(ctx, 2) },
		"Campaign": func(ctx context.Context, c *Client) { _, _ = c.Election("a", nil).Campaign(ctx, "x") },
		"Multi":    func(ctx context.Context, c *Client) { _, _ = c.Multi([]string{"a", "b"}, nil).Lock(ctx) },
		"Multi, one by one": func(ctx context.Context, c *Client) {
			_, _ = c.Multi([]string{"a", "b"}, nil).Lock(WithOwner(ctx, "me"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, &Options{Observer: panicky("Acquired")}, func(t *testing.T, c *Client, h *hooks) {
				if p := panicOf(func() { acquire(t.Context(), c) }); !isBug(p) {
					t.Fatalf("the panic came as %v", p)
				}
				nothingIsHeld(t, c)
			})
		})
	}
}

func TestObserver_IsToldOfABadName_ByEveryVerb(t *testing.T) {
	for verb, call := range map[string]func(ctx context.Context, m *Mutex) error{
		"Lock":    func(ctx context.Context, m *Mutex) error { return errOf(m.Lock(ctx)) },
		"TryLock": func(ctx context.Context, m *Mutex) error { return errOf(m.TryLock(ctx)) },
		"Do": func(ctx context.Context, m *Mutex) error {
			return m.Do(ctx, func(context.Context) error { return nil })
		},
		"TryDo": func(ctx context.Context, m *Mutex) error {
			return errOf(m.TryDo(ctx, func(context.Context) error { return nil }))
		},
	} {
		var told []error
		o := &Observer{Failed: func(_ context.Context, e Event) { told = append(told, e.Err) }}
		bubble(t, &Options{Observer: o}, func(t *testing.T, c *Client, _ *hooks) {
			err := call(t.Context(), c.Mutex("", nil))
			if err == nil || len(told) != 1 || told[0] != err { //nolint:errorlint // the same
				t.Errorf("%s: %v, told %v", verb, err, told)
			}
		})
	}
}

func TestObserver_ThatPanicsInTheMiddleOfAMulti_IsToldOfNoEndWithoutItsBeginning(t *testing.T) {
	var g ledger
	o := g.observer()
	acquired := o.Acquired
	o.Acquired = func(ctx context.Context, e Event) {
		acquired(ctx, e)
		panic(errBug)
	}
	bubble(t, &Options{Observer: o}, func(t *testing.T, c *Client, _ *hooks) {
		if p := panicOf(func() { _, _ = c.Multi([]string{"a", "b", "c"}, nil).Lock(t.Context()) }); !isBug(p) {
			t.Errorf("the panic came as %v", p)
		}
		nothingIsHeld(t, c)
		g.balances(t, 1)
	})
}

func TestObserver_ThatPanicsInAMulti_WaitsForAnEngineThatHangsNoLongerThanCloseTimeoutSays(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, h, &Options{CloseTimeout: second, Observer: panicky("Acquired")})
		defer c.Close()
		on(h, &h.release, h.hung)
		begin := time.Now()
		if p := panicOf(func() { _, _ = c.Multi([]string{"a", "b", "c"}, nil).Lock(t.Context()) }); !isBug(p) {
			t.Errorf("the panic came as %v", p)
		}
		if took := time.Since(begin); took > 2*c.in().Config.CloseTimeout {
			t.Errorf("the panic came after %v", took)
		}
		on(h, &h.release, h.Driver.Release)
		time.Sleep(shell.SettleAttempt + shell.SettleMost)
		nothingIsHeld(t, c)
	})
}

// nothingIsHeld fails if a lock is held or waited for, in the engine or in c.
func nothingIsHeld(t *testing.T, c *Client) {
	t.Helper()
	synctest.Wait()
	for info, err := range c.List(t.Context(), "") {
		t.Errorf("left: %+v, %v", info, err)
	}
	c.in().Lock()
	defer c.in().Unlock()
	if len(c.in().EngineHolds)+len(c.in().Lines)+len(c.in().LinesOfOne)+len(c.in().Cooldowns) > 0 {
		t.Errorf(
			"left in the client: %d grants, %d queues, %d waiters, %d rests",
			len(c.in().EngineHolds),
			len(c.in().Lines),
			len(c.in().LinesOfOne),
			len(c.in().Cooldowns),
		)
	}
}

func TestObserver_ThatPanicsAfterACondition_LeavesNothingHeld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		var panics atomic.Bool
		c := mustNew(t, h, &Options{Observer: &Observer{Acquired: func(ctx context.Context, e Event) {
			if panics.Load() {
				panicky("Acquired").Acquired(ctx, e)
			}
		}}})
		defer c.Close()
		l := mustLock(t, t.Context(), c, "a")
		panics.Store(true)
		out := make(chan any, 1)
		go func() { out <- panicOf(func() { _, _ = condOf(c).Wait(t.Context(), l) }) }()
		mustSignal(t, c)
		if p := <-out; !isBug(p) {
			t.Errorf("the panic came as %v", p)
		}
		nothingIsHeld(t, c)
	})
}

func TestObserver_ThatPanicsWhenACallFails_LeavesNothingHeld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, other *Client, h *hooks) {
		c := mustNew(t, h.Peer(), &Options{Observer: panicky("Failed")})
		defer c.Close()
		l := mustLock(t, t.Context(), other, "b")
		for _, call := range []func(){
			func() { _, _ = c.TryLock(t.Context(), "b") },
			func() { _, _ = c.Multi([]string{"a", "b"}, nil).TryLock(t.Context()) },
			func() { _, _ = c.Multi([]string{"a", "b"}, nil).TryLock(WithOwner(t.Context(), "me")) },
		} {
			if p := panicOf(call); !isBug(p) {
				t.Errorf("the panic came as %v", p)
			}
		}
		mustUnlock(t, l)
		nothingIsHeld(t, c)
	})
}

func TestObserver_ThatPanicsAfterAnUpgrade_LeavesTheHoldAsItIs(t *testing.T) {
	bubble(t, &Options{Observer: panicky("Upgraded")}, func(t *testing.T, c *Client, _ *hooks) {
		l := must(t)(c.RWMutex("a", nil).UpgradeableRLock(t.Context()))
		if p := panicOf(func() { _ = l.Upgrade(t.Context()) }); !isBug(p) {
			t.Errorf("the panic came as %v", p)
		}
		if s, ok := l.Stamp(); !ok || s.Shared {
			t.Errorf("after the panic the hold has %+v, %v", s, ok)
		}
		mustUnlock(t, l)
		nothingIsHeld(t, c)
	})
}

func TestObserver_ThatPanicsInAnyGoroutine_IsLoggedAndEndsNothing(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, c *Client, h *hooks){
		"Waiting": func(t *testing.T, c *Client, h *hooks) {
			other := peer(t, h, nil)
			far, near := mustLock(t, t.Context(), other, "far"), mustLock(t, t.Context(), c, "near")
			outs := []<-chan outcome{lockLater(t.Context(), c, "far"), lockLater(t.Context(), c, "near")}
			synctest.Wait()
			mustUnlock(t, far)
			mustUnlock(t, near)
			for _, out := range outs {
				mustUnlock(t, woken(t, "who waits", out))
			}
		},
		"Renewed": func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			time.Sleep(5 * time.Minute)
			mustUnlock(t, l)
		},
		"RenewalFailed": func(t *testing.T, c *Client, h *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			on(h, &h.renew, failAll)
			time.Sleep(defaultLease / 2)
			on(h, &h.renew, h.Driver.Renew)
			time.Sleep(defaultLease)
			mustUnlock(t, l)
		},
		"Retained":       recalled,
		"RetentionEnded": recalled,
		"Recalled":       recalled,
		"Settling":       recalled,
		"Settled":        recalled,
		"Lost": func(t *testing.T, c *Client, h *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			if err := c.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
				t.Error(err)
			}
			<-l.Lost()
			wantLost(t, l.Unlock(t.Context()), LostBroken)
		},
		"Released": func(t *testing.T, c *Client, _ *hooks) {
			mustUnlock(t, mustLock(t, t.Context(), c, "a"))
			if err := c.Multi([]string{"a", "b"}, nil).Do(t.Context(),
				func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
			mustLock(t, t.Context(), c, "for Close")
			mustLock(t, t.Context(), c, "for Close too")
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &records{Handler: slog.DiscardHandler}
			bubble(t, nil, func(t *testing.T, other *Client, h *hooks) {
				c := mustNew(t, h, &Options{Observer: panicky(name), Logger: slog.New(log)})
				defer c.Close()
				run(t, c, h)
				nothingIsHeld(t, other)
				if !log.has("Observer."+name, errBug.Error(), "observer_panics_test.go") {
					t.Errorf("logged: %q", log.all)
				}
			})
		})
	}
}

// recalled has c retain a lock, and another client recall it.
func recalled(t *testing.T, c *Client, h *hooks) {
	mustUnlock(t, must(t)(c.Mutex("a", &LockOptions{Retain: time.Hour}).Lock(t.Context())))
	mustUnlock(t, mustLock(t, t.Context(), peer(t, h, nil), "a"))
}

// byDefault runs f while slog.Default goes to the records that it returns.
func byDefault(f func()) *records {
	told, before, out, flags := &records{Handler: slog.DiscardHandler}, slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(told)) // SetDefault changes package log too
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(out)
		log.SetFlags(flags)
	}()
	f()
	return told
}

// Neither a bug of the program nor a loss must go unnoticed because the client has no Logger.
func TestLogger_ByDefault_IsThatOfTheProgram(t *testing.T) {
	told := byDefault(func() {
		bubble(t, &Options{Observer: panicky("Released")}, func(t *testing.T, c *Client, h *hooks) {
			mustUnlock(t, mustLock(t, t.Context(), c, "a"))
			on(h, &h.renew, refused)
			<-mustLock(t, t.Context(), c, "b").Lost()
		})
	})
	for _, want := range [][]string{
		{"Observer.Released has panicked", errBug.Error()},
		{"WARN interlock: renewal failed", "lock=b"},
		{"ERROR interlock: lock lost", "lock=b", "reason=unconfirmed"},
	} {
		if !told.has(want...) {
			t.Errorf("nothing says %q", want)
		}
	}
	// An outage lets tens of renewals fail for each lock.
	if n := told.count("WARN"); n != 1 {
		t.Errorf("%d warnings, want 1 for all renewals that failed in a row", n)
	}
}

// brokenLog is a slog handler whose every method panics.
type brokenLog struct{}

func (brokenLog) Enabled(context.Context, slog.Level) bool {
	panic(errBug)
}
func (brokenLog) Handle(context.Context, slog.Record) error { panic(errBug) }
func (brokenLog) WithAttrs([]slog.Attr) slog.Handler        { panic(errBug) }
func (brokenLog) WithGroup(string) slog.Handler             { panic(errBug) }

// eagerLog is brokenLog, but Enabled returns true instead of panicking.
type eagerLog struct{ brokenLog }

func (eagerLog) Enabled(context.Context, slog.Level) bool { return true }

func TestLogger_ThatPanics_EndsNothing(t *testing.T) {
	for name, handler := range map[string]slog.Handler{"asked": brokenLog{}, "told": eagerLog{}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c := mustNew(t, h, &Options{Observer: panicky("Lost"), Logger: slog.New(handler)})
				defer c.Close()
				l := mustLock(t, t.Context(), c, "a")
				on(h, &h.renew, func(_ context.Context, batch []driver.Renewal, done func(int, error)) {
					for i := range batch {
						done(i, errors.New("connection refused"))
					}
				})
				<-l.Lost()
				if err := mustLock(t, t.Context(), c, "b").Abandon(); err != nil {
					t.Error(err)
				}
				if log := c.in().Config.Logger.With("a", 1).WithGroup("g"); log == nil {
					t.Error("no Logger")
				}
			})
		})
	}
}

func TestDo_WhoseFunctionPanics_ReleasesAndPanicsOn(t *testing.T) {
	bug := func(context.Context) error { panic(errBug) }
	for name, do := range map[string]func(ctx context.Context, c *Client){
		"Do":       func(ctx context.Context, c *Client) { _ = c.Do(ctx, "a", bug) },
		"TryDo":    func(ctx context.Context, c *Client) { _, _ = c.Mutex("a", nil).TryDo(ctx, bug) },
		"Multi.Do": func(ctx context.Context, c *Client) { _ = c.Multi([]string{"a", "b"}, nil).Do(ctx, bug) },
		"Locks": func(ctx context.Context, c *Client) {
			_ = c.Do(ctx, "a", func(ctx context.Context) error {
				for range c.List(ctx, "") {
					panic(errBug)
				}
				return nil
			})
		},
		"Observe": func(ctx context.Context, c *Client) {
			for range c.Election("a", nil).Observe(ctx) {
				panic(errBug)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
				if p := panicOf(func() { do(t.Context(), c) }); !isBug(p) {
					t.Errorf("the panic came as %v", p)
				}
				nothingIsHeld(t, c)
			})
		})
	}
}
