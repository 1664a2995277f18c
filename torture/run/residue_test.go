package run

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/torture/worker"
)

func TestAPermit_ThatIsNotGivenBack_IsMissing(t *testing.T) {
	locks, err := interlock.New(memlock.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close() }()
	missing := func() string { return strings.Join(missingPermits(t.Context(), locks, 100*time.Millisecond), "\n") }
	for range 2 {
		if got := missing(); got != "" {
			t.Errorf("of a semaphore that nobody holds: %s", got)
		}
	}
	one, err := locks.Semaphore(worker.Semaphore, worker.Permits, nil).Acquire(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := missing(); !strings.Contains(got, "not all 2 of them") {
		t.Errorf("with one that is held: %q", got)
	}
	if err := one.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if got := missing(); got != "" {
		t.Errorf("when it was given back: %s", got)
	}
}
