package locktx

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

var errOfWork = errors.New("out of stock")

func TestRun_UnlocksAfterTheDatabaseHasAnswered(t *testing.T) {
	tests := map[string]struct {
		then     func(ctx context.Context) error
		want     error
		commits  int
		panicked bool
	}{
		"commit":   {fine, nil, 1, false},
		"error":    {func(context.Context) error { return errOfWork }, errOfWork, 0, false},
		"panic":    {func(context.Context) error { panic(errOfWork) }, nil, 0, true},
		"nil func": {nil, nil, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				s.held()
				panicked := true
				func() {
					defer func() { _ = recover() }()
					if err := s.run(t.Context(), test.then); !errors.Is(err, test.want) {
						t.Errorf("got %v, want %v", err, test.want)
					}
					panicked = false
				}()
				if panicked != test.panicked {
					t.Errorf("panicked: %v", panicked)
				}
				if c, r := s.f.count("commit"), s.f.count("rollback"); c != test.commits || r != 1-test.commits {
					t.Errorf("%d commits, %d rollbacks", c, r)
				}
				s.wantFree(true, "afterwards")
			})
		})
	}
}

func TestRun_WhoseFunctionCallsGoexit_RollsBackAndUnlocks(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.held()
		ended := make(chan struct{})
		go func() { // ends by Goexit
			defer close(ended)
			_ = s.run(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Run has returned")
		}()
		<-ended
		if s.f.count("rollback") != 1 || s.f.count("commit") != 0 {
			t.Errorf("asked %v", s.f.asked)
		}
		s.wantFree(true, "afterwards")
	})
}

func TestRun_WhoseContextEnds_RollsBackAndUnlocks(t *testing.T) {
	for name, heeds := range map[string]bool{
		"and the function notices": true, "and the function does not notice": false,
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				s.held()
				why := errors.New("shutting down")
				ctx, cancel := context.WithCancelCause(t.Context())
				err := s.run(ctx, func(ctx context.Context) error {
					cancel(why)
					if heeds {
						return ctx.Err()
					}
					return nil
				})
				if !errors.Is(err, context.Canceled) || !heeds && !errors.Is(err, why) || OutcomeOf(err) != RolledBack {
					t.Errorf("got %v", err)
				}
				if s.f.count("commit") != 0 || s.f.count("rollback") != 1 {
					t.Errorf("asked %v", s.f.asked)
				}
				s.wantFree(true, "afterwards")
			})
		})
	}
}

func TestRun_WhoseLockIsLost_RollsBack_AndSaysSo(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		m := s.locks.Mutex("a", &interlock.LockOptions{MaxHold: time.Minute})
		err := Run(t.Context(), s.db, m, nil, func(ctx context.Context, _ *sql.Tx) error {
			<-ctx.Done()
			return errOfWork
		})
		if !errors.Is(err, interlock.ErrLost) || !errors.Is(err, errOfWork) || OutcomeOf(err) != RolledBack {
			t.Errorf("got %v", err)
		}
		err = Run(t.Context(), s.db, m, nil, func(ctx context.Context, _ *sql.Tx) error {
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, interlock.ErrLost) || s.f.count("commit") != 0 || s.f.count("rollback") != 2 {
			t.Errorf("got %v, asked %v", err, s.f.asked)
		}
	})
}

func TestRun_WhoseDriverPanicsAtTheBeginning_UnlocksAndClosesTheConnection(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.f.begin = func() error { panic("a bug of the driver") }
		func() {
			defer func() {
				if r := recover(); r != "a bug of the driver" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = s.run(t.Context(), fine)
		}()
		s.wantFree(true, "afterwards")
		if n := s.f.count("close"); n != 1 {
			t.Errorf("closed %d connections, want the one", n)
		}
	})
}

func TestRun_WhoseRollbackHangs_ReturnsWithItsContext_AndUnlocksWhenItIsAnswered(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		proceed := make(chan struct{})
		s.f.rollback = func() error { <-proceed; return nil }
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		err := s.run(ctx, func(context.Context) error { cancel(); return errOfWork })
		if !errors.Is(err, errOfWork) || OutcomeOf(err) != RolledBack || time.Since(start) > 50*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		s.wantFree(false, "before the answer")
		close(proceed)
		synctest.Wait()
		s.wantFree(true, "after the answer")
	})
}

func TestRun_WhoseRollbackIsNeverAnswered_LetsTheLockRunOut(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		staged(t, func(t *testing.T, s *stage) {
			proceed := make(chan struct{})
			defer close(proceed)
			s.f.rollback = func() error { <-proceed; return nil }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			_ = s.run(ctx, func(context.Context) error {
				if cancelled {
					cancel()
				}
				return errOfWork
			})
			if got := time.Since(start); got > patience {
				t.Errorf("it returned after %v", got)
			}
			s.wantFree(false, "afterwards")
			s.wantRunsOut(start)
		})
	}
}

func TestRun_WhoseConnectionBreaksBeforeTheCommit_RollsBackAndUnlocks(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		err := s.run(t.Context(), func(context.Context) error { s.f.cut(); return errOfWork })
		if !errors.Is(err, errOfWork) || OutcomeOf(err) != RolledBack {
			t.Errorf("got %v", err)
		}
		s.wantFree(true, "afterwards")
	})
}

func TestRun_WhoseFunctionEndsTheTransaction_SaysSo(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		start := time.Now()
		err := Run(t.Context(), s.db, s.m, nil, func(_ context.Context, tx *sql.Tx) error { return tx.Rollback() })
		if OutcomeOf(err) != Unknown || !strings.Contains(err.Error(), "something else has ended") {
			t.Errorf("got %v", err)
		}
		s.wantRunsOut(start)
	})
}

func TestRun_ReentersWithItsContext(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		err := s.run(t.Context(), func(ctx context.Context) error {
			interlock.AssertHeld(ctx, "a")
			return s.m.Do(ctx, fine)
		})
		if err != nil {
			t.Error(err)
		}
		s.wantFree(true, "afterwards")
	})
}

func TestRun_ThatCannotBegin_UnlocksAtOnce(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		refused := errors.New("too many connections")
		s.f.begin = func() error { return refused }
		if err := s.run(t.Context(), fine); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		s.wantFree(true, "afterwards")
	})
}

func TestRun_WhoseEngineHangsAtTheUnlock_ReturnsWithItsContext(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		d, control := faulty.Wrap(memlock.New(nil), 1)
		locks, err := interlock.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			control.Resume()
			_, _ = locks.Close(), d.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err = Run(ctx, s.db, locks.Mutex("a", nil), nil, func(context.Context, *sql.Tx) error {
			control.Pause()
			return nil
		})
		if got := time.Since(start) - time.Second; err != nil || got > 50*time.Millisecond {
			t.Errorf("%v, %v after its context; it was committed, and the release goes on in the background", err, got)
		}
	})
}

func TestRun_OfWhatMakesNoSense_SaysSo(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		fn := func(context.Context, *sql.Tx) error { return nil }
		for want, err := range map[string]error{
			"database": Run(t.Context(), nil, s.m, nil, fn),
			"mutex":    Run(t.Context(), s.db, nil, nil, fn),
			"function": Run(t.Context(), s.db, s.m, nil, nil),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error about the %s", err, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Run(ctx, s.db, s.m, nil, fn); !errors.Is(err, context.Canceled) || s.f.count("begin") != 0 {
			t.Errorf("got %v, asked %v", err, s.f.asked)
		}
	})
}
