package target

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/longrun"
)

// What an operator takes away is somebody else's at once, and who had it is told.
func TestOperator_WhatIsTakenAwayIsFree_AndItsHolderIsTold(t *testing.T) {
	longrun.Only(t)
	for _, g := range Targets() {
		if !g.Can(Delete) {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			i := g.Start(t, nil)
			dice := rand.New(rand.NewPCG(1, 1))
			if err := i.Injections[Delete](t.Context(), dice, 50*time.Millisecond); !errors.Is(err, ErrNothing) {
				t.Errorf("without a lock: %v", err)
			}
			for _, f := range []Fault{Delete, Wipe, Sessions} {
				if g.Broken[f] == "" {
					continue
				}
				held, err := openWith(t, i.Direct(), g.Lease).Lock(t.Context(), "x")
				if err != nil {
					t.Fatal(err)
				}
				if err := i.Injections[f](t.Context(), dice, time.Second); err != nil {
					t.Errorf("%s: %v", f, err)
				}
				lock(t, openWith(t, i.Direct(), g.Lease), "x")
				select {
				case <-held.Lost():
				case <-time.After(5*time.Second + 2*g.Lease): // etcdlock lists its keys every five seconds
					t.Errorf("%s: its holder was not told", f)
				}
			}
		})
	}
}

func openWith(t *testing.T, url string, lease time.Duration) *interlock.Client {
	t.Helper()
	locks, err := interlock.Open(t.Context(), url, &interlock.Options{Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // what it held is gone
	return locks
}

// A fault that has nothing to be done to says so when its time is over, or the run is.
func TestOnce_IsDoneOrSaysThatItWasNot(t *testing.T) {
	tries := 0
	inject := once(func(context.Context, *rand.Rand) (bool, error) { tries++; return tries == 3, nil })
	if err := inject(t.Context(), nil, time.Minute); err != nil || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inject(ended, nil, time.Minute); !errors.Is(err, ErrNothing) {
		t.Errorf("when the run was over: %v", err)
	}
}
