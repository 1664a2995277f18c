package locktx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
)

// begin starts a transaction that holds the lock, and records what it is told.
func (s *stage) begin(ctx context.Context) (tx *Tx, told *[]string) {
	s.t.Helper()
	tx, err := Begin(ctx, s.db, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := s.m.Lock(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	tx.Hold(l)
	told = &[]string{}
	for _, who := range []string{"first", "second"} {
		tx.OnCompletion(func(o Outcome) {
			*told = append(*told, fmt.Sprint(who, ": ", o, ", free: ", s.free()))
		})
	}
	return tx, told
}

func TestTx_TellsOfItsCompletion_AndThenUnlocks(t *testing.T) {
	for want, end := range map[Outcome]func(tx *Tx) error{Committed: (*Tx).Commit, RolledBack: (*Tx).Rollback} {
		t.Run(want.String(), func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				s.held()
				tx, told := s.begin(t.Context())
				if _, err := tx.ExecContext(t.Context(), "INSERT"); err != nil {
					t.Error(err)
				}
				if err := end(tx); err != nil {
					t.Error(err)
				}
				all := []string{
					fmt.Sprint("first: ", want, ", free: false"), fmt.Sprint("second: ", want, ", free: false"),
				}
				if !slices.Equal(*told, all) {
					t.Errorf("told %q, want %q", *told, all)
				}
				s.wantFree(true, "afterwards")
				if c, r := tx.Commit(), tx.Rollback(); !errors.Is(c, sql.ErrTxDone) || !errors.Is(r, sql.ErrTxDone) {
					t.Errorf("ended again: %v, %v", c, r)
				}
				if len(*told) != 2 {
					t.Errorf("told again: %q", *told)
				}
			})
		})
	}
}

func TestTx_WhatComesAfterItsCompletion_IsDoneAtOnce(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		tx, _ := s.begin(t.Context())
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		l, err := s.m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tx.Hold(l)
		s.wantFree(true, "after a late Hold")
		got := Outcome(0)
		tx.OnCompletion(func(o Outcome) { got = o })
		if got != Committed {
			t.Errorf("told %v", got)
		}
		tx.Hold(nil)
		tx.OnCompletion(nil)
	})
}

func TestTx_WithAFunctionThatPanics_StillTellsTheOthersAndUnlocks(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		tx, told := s.begin(t.Context())
		tx.OnCompletion(func(Outcome) { panic("mine") })
		tx.OnCompletion(func(Outcome) { *told = append(*told, "last") })
		func() {
			defer func() {
				if r := recover(); r != "mine" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = tx.Commit()
		}()
		if len(*told) != 3 {
			t.Errorf("told %q", *told)
		}
		s.wantFree(true, "afterwards")
	})
}

func TestTx_WhoseContextHasEnded_IsNotRolledBackByItself_ButNotCommittedEither(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.held()
		ctx, cancel := context.WithCancel(t.Context())
		tx, told := s.begin(ctx)
		cancel()
		synctest.Wait()
		if s.f.count("rollback") != 0 {
			t.Error("database/sql has rolled back by itself")
		}
		s.wantFree(false, "before the end")
		if err := tx.Commit(); !errors.Is(err, context.Canceled) || OutcomeOf(err) != RolledBack {
			t.Errorf("got %v", err)
		}
		if s.f.count("commit") != 0 || s.f.count("rollback") != 1 || len(*told) != 2 {
			t.Errorf("asked %v, told %v", s.f.asked, *told)
		}
		s.wantFree(true, "afterwards")
	})
}

func TestTx_WhoseOutcomeIsUnknown_TellsSo_AndALateHoldRunsOutToo(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.f.commit = func() error { return driver.ErrBadConn }
		tx, told := s.begin(t.Context())
		if err := tx.Commit(); OutcomeOf(err) != Unknown {
			t.Errorf("got %v", err)
		}
		if want := "first: outcome unknown, free: false"; len(*told) != 2 || (*told)[0] != want {
			t.Errorf("told %q, want %q", *told, want)
		}
		late, err := s.locks.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		tx.Hold(late)
		if _, err := s.other.TryLock(t.Context(), "b"); !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBegin_OverConnectionsThatHaveBroken_TakesAnother(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		first, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = first.Close() // it is idle now
		bad := true
		s.f.begin = func() error {
			if bad {
				bad = false
				return driver.ErrBadConn
			}
			return nil
		}
		tx, err := Begin(t.Context(), s.db, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		s.f.begin = func() error { return driver.ErrBadConn }
		if _, err := Begin(t.Context(), s.db, nil); !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBegin_WhoseContextEndsMeanwhile_LeavesNothing(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		ctx, cancel := context.WithCancel(t.Context())
		s.f.begin = func() error { cancel(); synctest.Wait(); return nil }
		tx, err := Begin(ctx, s.db, nil)
		if tx != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v", tx, err)
		}
		synctest.Wait()
		if n := s.db.Stats().InUse; n != 0 {
			t.Errorf("%d connections in use", n)
		}
		if _, err := Begin(ctx, s.db, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := Begin(t.Context(), nil, nil); err == nil {
			t.Error("a nil database is taken")
		}
	})
}

func TestTx_GivesItsConnectionBack(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.db.SetMaxOpenConns(1)
		for range 3 {
			tx, _ := s.begin(t.Context())
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			tx, _ = s.begin(t.Context())
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestOutcome_IsReadable(t *testing.T) {
	err := fmt.Errorf("buy: %w", &OutcomeError{Outcome: Unknown, Err: driver.ErrBadConn})
	if got := err.Error(); got != "buy: locktx: outcome unknown: driver: bad connection" || OutcomeOf(err) != Unknown {
		t.Errorf("got %s, %v", got, OutcomeOf(err))
	}
	if Outcome(9).String() != "Outcome(9)" || OutcomeOf(errOfWork) != RolledBack {
		t.Error("an outcome is not what it should be")
	}
}

func TestTx_WhoseLockHasEnded_IsRolledBackInsteadOfCommitted(t *testing.T) {
	for want, end := range map[error]func(l *interlock.Lease){
		interlock.ErrLost:     func(l *interlock.Lease) { <-l.Lost() },
		interlock.ErrReleased: func(l *interlock.Lease) { _ = l.Unlock(context.Background()) },
	} {
		staged(t, func(t *testing.T, s *stage) {
			tx, err := Begin(t.Context(), s.db, nil)
			if err != nil {
				t.Fatal(err)
			}
			l, err := s.locks.Mutex("b", &interlock.LockOptions{MaxHold: time.Minute}).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tx.Hold(l)
			end(l)
			if err := tx.Commit(); !errors.Is(err, want) || OutcomeOf(err) != RolledBack || s.f.count("commit") != 0 {
				t.Errorf("got %v, asked %v", err, s.f.asked)
			}
		})
	}
}
