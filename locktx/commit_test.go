package locktx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
)

func TestRun_WhoseLockIsLostDuringTheCommit_SaysThatItWasCommitted(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		m := s.locks.Mutex("a", &interlock.LockOptions{MaxHold: 2 * time.Second})
		start := time.Now()
		s.f.commit = func() error {
			time.Sleep(3 * time.Second) // virtual
			s.wantFree(false, "after MaxHold, but before the answer,")
			return nil
		}
		err := Run(t.Context(), s.db, m, nil, func(context.Context, *sql.Tx) error { return nil })
		if !errors.Is(err, interlock.ErrLost) || OutcomeOf(err) != Committed {
			t.Errorf("got %v", err)
		}
		s.wantRunsOut(start)
	})
}

// sqlError is an error with an SQLState method, as drivers of PostgreSQL have it.
type sqlError string

func (e sqlError) Error() string    { return "SQLSTATE " + string(e) }
func (e sqlError) SQLState() string { return string(e) }

func TestRun_WhoseCommitFails_UnlocksOnlyIfTheDatabaseHasAnswered(t *testing.T) {
	tests := map[string]struct {
		err  error
		cut  bool
		want Outcome
	}{
		"refused":                         {sqlError("40001"), false, RolledBack},
		"an error of its own":             {errors.New("commit unexpectedly resulted in rollback"), false, RolledBack},
		"bad connection":                  {driver.ErrBadConn, false, Unknown},
		"broken, as another error":        {errors.New("unexpected EOF"), true, Unknown},
		"the server cannot tell":          {sqlError("40003"), false, Unknown},
		"the connection failed":           {fmt.Errorf("commit: %w", sqlError("08006")), false, Unknown},
		"an operator ended it":            {sqlError("57P01"), false, Unknown},
		"refused, and the session broke":  {sqlError("40001"), true, Unknown},
		"something else has ended before": {sql.ErrTxDone, false, Unknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				s.f.commit = func() error {
					if test.cut {
						s.f.cut()
					}
					return test.err
				}
				start := time.Now()
				err := s.run(t.Context(), fine)
				if OutcomeOf(err) != test.want || !errors.Is(err, test.err) {
					t.Errorf("got %v", err)
				}
				if test.want == RolledBack {
					s.wantFree(true, "afterwards")
					return
				}
				s.wantRunsOut(start)
			})
		})
	}
}

// wantRunsOut fails unless the lock, which was taken at the instant since, becomes free with its lease and not before.
func (s *stage) wantRunsOut(since time.Time) {
	s.t.Helper()
	l, err := s.other.Lock(context.Background(), "a")
	if err != nil {
		s.t.Fatal(err)
	}
	if got := time.Since(since); got < 29*time.Second || got > 31*time.Second {
		s.t.Errorf("the lock was free after %v, want its lease of 30 s", got)
	}
	_ = l.Unlock(context.Background())
}

func TestRun_WhoseCommitHangs_ReturnsWithItsContext_AndTheLockRunsOut(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		proceed := make(chan struct{})
		defer close(proceed)
		s.f.commit = func() error { <-proceed; return nil }
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		err := s.run(ctx, fine)
		if OutcomeOf(err) != Unknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := time.Since(start) - 20*time.Second; got > 50*time.Millisecond {
			t.Errorf("it returned %v after its context", got)
		}
		s.wantFree(false, "afterwards")
		s.wantRunsOut(start.Add(20 * time.Second)) // it was renewed just then
	})
}

func TestRun_WhoseCommitHangs_AndWhoseContextNeverEnds_WaitsForALease(t *testing.T) {
	for name, test := range map[string]struct {
		opts interlock.LockOptions
		want time.Duration
	}{
		"of the default length":   {interlock.LockOptions{}, 29 * time.Second},
		"a short one":             {interlock.LockOptions{Lease: time.Second}, 5 * time.Second},
		"a long one":              {interlock.LockOptions{Lease: 2 * time.Minute}, 118 * time.Second},
		"one that ends by then":   {interlock.LockOptions{MaxHold: 10 * time.Second}, 10 * time.Second},
		"one that is not renewed": {interlock.LockOptions{Lease: 10 * time.Second, NoRenew: true}, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				proceed := make(chan struct{})
				defer close(proceed)
				s.f.commit = func() error { <-proceed; return nil }
				start := time.Now()
				err := Run(context.Background(), s.db, s.locks.Mutex("b", &test.opts), nil,
					func(context.Context, *sql.Tx) error {
						return nil
					})
				if OutcomeOf(err) != Unknown || !strings.Contains(err.Error(), "did not answer the COMMIT in") {
					t.Errorf("got %v", err)
				}
				if got := time.Since(start); got < test.want || got > test.want+time.Second {
					t.Errorf("it returned after %v, want %v", got, test.want)
				}
				if _, err := s.other.TryLock(t.Context(), "b"); !errors.Is(err, interlock.ErrHeld) {
					t.Errorf("afterwards: %v, want that it is held", err)
				}
			})
		})
	}
}

func TestTx_WithSeveralLocks_WaitsForItsCommitAsLongAsTheFirstOfThemLasts(t *testing.T) {
	for name, test := range map[string]struct {
		leases []time.Duration
		want   time.Duration
	}{
		"the shorter first": {[]time.Duration{10 * time.Second, 10 * time.Minute}, 9 * time.Second},
		"the longer first":  {[]time.Duration{10 * time.Minute, 10 * time.Second}, 9 * time.Second},
		"a very short one":  {[]time.Duration{time.Second, time.Minute}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				tx, err := Begin(context.Background(), s.db, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i, lease := range test.leases {
					l, err := s.locks.Mutex(fmt.Sprint(i), &interlock.LockOptions{Lease: lease}).Lock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					tx.Hold(l)
				}
				proceed := make(chan struct{})
				defer close(proceed)
				s.f.commit = func() error { <-proceed; return nil }
				start := time.Now()
				if err := tx.Commit(); OutcomeOf(err) != Unknown {
					t.Errorf("got %v", err)
				}
				if got := time.Since(start); got < test.want || got > test.want+time.Second {
					t.Errorf("it returned after %v, want %v", got, test.want)
				}
			})
		})
	}
}

func TestAwait_OfAnAnswerThatComesTogetherWithTheEnd_TakesTheAnswer(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a select would take either
		said := make(chan answer, 1)
		said <- answer{Committed, nil}
		if a, came := await(said, ended.Done(), nil); !came || a.outcome != Committed {
			t.Fatalf("got %v, %v", a, came)
		}
	}
}

func TestTx_WithoutALock_WaitsForItsCommitAsLongAsItTakes(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		s.f.commit = func() error { time.Sleep(time.Hour); return nil } // virtual
		tx, err := Begin(t.Context(), s.db, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	})
}

func TestClose_OfTheClientDuringACommit_FreesNothingBeforeTheAnswer(t *testing.T) {
	for name, takes := range map[string]time.Duration{
		"that is answered soon": time.Second, "that takes long": 20 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				closed := make(chan error, 1)
				s.f.commit = func() error {
					go func() { closed <- s.locks.Close() }() // ends with the commit, or after half of CloseTimeout
					time.Sleep(takes)                         // virtual
					s.wantFree(false, "before the answer")
					return nil
				}
				start := time.Now()
				err := s.run(t.Context(), fine)
				if soon := takes == time.Second; OutcomeOf(err) != Committed || soon != (err == nil) {
					t.Errorf("got %v", err)
				} else if soon {
					s.wantFree(true, "after the answer")
				} else {
					s.wantRunsOut(start)
				}
				if err := <-closed; err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

func TestRun_WhoseClientIsBeingClosed_RollsBack(t *testing.T) {
	staged(t, func(t *testing.T, s *stage) {
		b, err := s.locks.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		over, err := b.Pending() // keeps Close from going on
		if err != nil {
			t.Fatal(err)
		}
		err = s.run(t.Context(), func(context.Context) error {
			go func() { _ = s.locks.Close() }() // ends when over is called
			synctest.Wait()
			return nil
		})
		if !errors.Is(err, interlock.ErrClosed) || OutcomeOf(err) != RolledBack || s.f.count("commit") != 0 {
			t.Errorf("got %v, asked %v", err, s.f.asked)
		}
		over()
	})
}
