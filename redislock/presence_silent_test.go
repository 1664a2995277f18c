package redislock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

// denying is a Conn to a server that refuses withdrawals for as long as denies says so.
type denying struct {
	Conn
	denies atomic.Bool
}

func (c *denying) Call(ctx context.Context, call *Call) Reply {
	if len(call.Args) > 1 && call.Args[1] == "u" && c.denies.Load() {
		return Reply{Err: &RefusedError{Err: errors.New("NOPERM this user has no permissions")}}
	}
	return c.Conn.Call(ctx, call)
}

// The place of a waiter that could not be withdrawn is gone soon, although others go on waiting in the process, which
// would say for all of them that they are alive. These keep their places.
func TestWithdrawal_ThatIsRefused_LeavesAPlaceThatEndsSoon(t *testing.T) {
	s := servers.RedisServer(t, nil)
	client, err := rueidis.NewClient(soloOption(s.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	c := &denying{Conn: rueidisconn.New(client, true)}
	d, err := start(t.Context(), c, &Options{Check: CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	other := open(t, soloOption(s.Addr()), nil)
	held := lockRequest("held", "x")
	if _, err := other.Acquire(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	waiting := func(ids ...string) func() bool {
		return func() bool {
			info, err := other.Look(t.Context(), held.Key)
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			for _, w := range info.Waiters {
				found += w.Owner
			}
			want := ""
			for _, id := range ids {
				want += "o-" + id
			}
			return found == want
		}
	}
	acquire := func(id string) (end func(), done <-chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := d.Acquire(ctx, lockRequest(id, "x"))
			ended <- err
		}()
		return cancel, ended
	}
	outcome := func(what string, of <-chan error) (err error) {
		t.Helper()
		eventually(t, what, func() bool {
			select {
			case err = <-of:
				return true
			default:
				return false
			}
		})
		return err
	}
	giveUp, gaveUp := acquire("quits")
	eventually(t, "the first waits", waiting("quits"))
	end, in := acquire("stays")
	defer end()
	eventually(t, "both wait", waiting("quits", "stays"))
	eventually(t, "the process speaks for them", func() bool {
		d.presence.mu.Lock()
		defer d.presence.mu.Unlock()
		return d.presence.spoken
	})
	giveUp()
	if err := outcome("the end of the wait", gaveUp); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.denies.Store(true)
	undo := &driver.Release{Key: held.Key, ID: "quits", Undo: true, Horizon: time.Minute}
	if err := d.Release(t.Context(), undo); driver.Refusal(err) == nil {
		t.Fatalf("the withdrawal: %v", err)
	}
	eventually(t, "the place is gone, and the other is not", waiting("stays"))
	c.denies.Store(false)
	if err := d.Release(t.Context(), undo); err != nil {
		t.Fatalf("the withdrawal that is not refused: %v", err)
	}
	if d.presence.isSilent() {
		t.Error("nothing is left any more, and the process is silent")
	}
	eventually(t, "the process speaks again", func() bool {
		alive, err := s.Do(t.Context(), "ZSCORE", d.names.alive(), d.process)
		now, bad := s.Do(t.Context(), "TIME")
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		return alive.(string) > now.([]any)[0].(string)+"999"
	})
	if err := other.Release(t.Context(), releaseOf(held)); err != nil {
		t.Fatal(err)
	}
	if err := outcome("the other to get in", in); err != nil {
		t.Error(err)
	}
}
