package sim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

// A process that was killed comes back under the name that it had, while the engine still has its old hold: that is
// somebody else's, and when it is over the new hold has a token and a nonce of its own.
func TestWhoComesBackUnderItsName_DoesNotHaveItsOldHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New(nil)
		start := func() *interlock.Client {
			c, err := interlock.New(engine, &interlock.Options{ClientName: "worker-3", Lease: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			return c
		}
		killed, again := start(), start()
		dies := &interlock.LockOptions{NoRenew: true} // as a killed process does: nothing is said for it any more
		old, err := killed.Mutex("x", dies).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		was, _ := old.Stamp()
		if l, err := again.TryLock(t.Context(), "x"); !errors.Is(err, interlock.ErrHeld) {
			t.Fatalf("it came back and has the old hold, with token %d of %d: %v", tokenOf(l), was.Token, err)
		}
		l, err := again.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if is, _ := l.Stamp(); is.Token <= was.Token || is.Nonce == was.Nonce {
			t.Errorf("it came back, and has %+v after %+v", is, was)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func tokenOf(l *interlock.Lease) uint64 {
	if l == nil {
		return 0
	}
	return l.Token()
}
