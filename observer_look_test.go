package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/internal/shell"
)

// An Observer that is told of a wait can look at the lock for who is in the way. It recognises the call again at its
// end.
func TestObserver_OfAWait_CanLookAtTheLock_AndKnowsTheEndOfTheCall(t *testing.T) {
	var m minutes
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, h, &Options{Observer: m.observer()}), peer(t, h, nil)
		defer c.Close()
		l := must(t)(other.Mutex("a", &LockOptions{Label: "in the way"}).Lock(t.Context()))
		first := lockLater(t.Context(), c, "a")
		synctest.Wait() // so that it is the first in line
		second := lockLater(t.Context(), c, "a")
		synctest.Wait()
		waits := m.of("Waiting")
		if len(waits) != 2 || waits[0].Call == waits[1].Call || waits[0].Call == (CallID{}) {
			t.Fatalf("told of the waits %+v", waits)
		}
		info, err := waits[0].Look(t.Context())
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Label != "in the way" {
			t.Errorf("a look shows %+v, %v", info, err)
		}
		mustUnlock(t, l)
		mustUnlock(t, woken(t, "who waits", first))
		mustUnlock(t, woken(t, "who waits", second))
		ends := m.of("Acquired")
		if ends[0].Call != waits[0].Call || ends[1].Call != waits[1].Call {
			t.Errorf("the waits %+v have the ends %+v", waits, ends)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := waits[0].Look(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("a look after Close: %v", err)
		}
	})
	if _, err := (Event{}).Look(context.Background()); !errors.Is(err, shell.ErrNoClient) {
		t.Errorf("a look by an Event that nobody told: %v", err)
	}
}
