package interlock

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/fence"
)

// touch has the fence check the lease's stamp.
func touch(t *testing.T, g *fence.MemoryGuard, l *Lease) error {
	t.Helper()
	s, ok := l.Stamp()
	if !ok {
		t.Fatalf("no stamp: %v", l.Err())
	}
	return g.Check("a", s)
}

// mustTouch fails if the fence refuses a holder.
func mustTouch(t *testing.T, g *fence.MemoryGuard, l *Lease, when string) {
	t.Helper()
	if err := touch(t, g, l); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

func TestFence_LetsAHolderPassInEachModeThatItTakes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		var g fence.MemoryGuard
		rw, theirs := c.RWMutex("a", nil), other.RWMutex("a", nil)
		l, err := rw.UpgradeableRLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustTouch(t, &g, l, "upgradeable")
		beside, err := theirs.RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustTouch(t, &g, beside, "beside it")
		mustTouch(t, &g, l, "upgradeable, a newer reader was there")
		mustUnlock(t, beside)
		for range 2 {
			if err := l.Upgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustTouch(t, &g, l, "upgraded")
			mustTouch(t, &g, l, "upgraded, again")
			if err := l.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustTouch(t, &g, l, "downgraded to upgradeable")
		}
		mustUnlock(t, l)
		if l, err = theirs.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		written, _ := l.Stamp()
		mustTouch(t, &g, l, "writing")
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustTouch(t, &g, l, "downgraded to reading")
		reader, err := rw.RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustTouch(t, &g, reader, "another reader")
		mustTouch(t, &g, l, "downgraded to reading, a newer reader was there")
		if err := g.Check("a", written); !errors.Is(err, fence.ErrStale) {
			t.Errorf("a write that was sent before the downgrade comes after another has read: %v", err)
		}
		mustUnlock(t, l)
		mustUnlock(t, reader)
	})
}

func TestFence_LetsEachReceiverOfALocalPassPass(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		var g fence.MemoryGuard
		first := mustLock(t, t.Context(), c, "a")
		mustTouch(t, &g, first, "the first")
		again := mustLock(t, first.Context(t.Context()), c, "a")
		mustTouch(t, &g, again, "re-entered")
		mustTouch(t, &g, first, "the first again")
		old, _ := first.Stamp()
		wait := lockLater(t.Context(), c, "a")
		mustUnlock(t, again)
		mustUnlock(t, first)
		second := (<-wait).lease
		mustTouch(t, &g, second, "the second")
		if err := g.Check("a", old); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the first, after the second: %v", err)
		}
		mustUnlock(t, second)
	})
}
