package goredislock

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/go-redis/v9"
)

func publish(t *testing.T, addr, text string) {
	t.Helper()
	admin(t, addr, "PUBLISH", testChannel, text)
}

func TestPushes_ArriveInOrder(t *testing.T) {
	addr := servers.Redis(t)
	for _, protocol := range []int{2, 3} {
		h := newTeller()
		begin(t, redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol}), h)
		for i := range 1000 { // more than go-redis keeps for a reader that is slow
			publish(t, addr, fmt.Sprint(i))
		}
		for i := range 1000 {
			h.Want(t, pushed(0, testChannel, fmt.Sprint(i)))
		}
		h.None(t)
	}
}

func TestFeed_ThatIsKilled_IsMadeAnewUnasked(t *testing.T) {
	addr := servers.Redis(t)
	for _, protocol := range []int{2, 3} {
		h := newTeller()
		begin(t, redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol}), h)
		for range 3 {
			admin(t, addr, "CLIENT", "KILL", "TYPE", "pubsub")
			h.Want(t, told{})              // it broke
			h.Want(t, told{Resumed: true}) // there is a new one
			publish(t, addr, "news")
			h.Want(t, pushed(0, testChannel, "news"))
		}
		h.None(t)
	}
}

// Nothing tells of a machine that is gone: only that nothing is heard.
func TestFeed_ThatFallsSilent_IsMadeAnew(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	h := newTeller()
	c := begin(t, solo(proxy.Addr()), h)
	mustCall(t, c, lockCall(t, "a"))
	proxy.BlackHole(servers.BothWays)
	h.Want(t, told{})
	proxy.Pass()
	h.Want(t, told{Resumed: true})
	eventually(t, "the old subscription to end", func() bool {
		return fmt.Sprint(admin(t, addr, "PUBSUB", "NUMSUB", testChannel)) == "["+testChannel+" 1]"
	})
	publish(t, addr, "news")
	h.Want(t, pushed(0, testChannel, "news"))
}

// A feed on which nothing happens is asked whether it is there, and goes on.
func TestFeed_WithoutMessages_Goes_On(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	addr := servers.Redis(t)
	h := newTeller()
	begin(t, solo(addr), h)
	pings := ran(t, addr, "ping")
	eventually(t, "two pings", func() bool { return ran(t, addr, "ping") >= pings+2 })
	publish(t, addr, "news")
	h.Want(t, pushed(0, testChannel, "news"))
	h.None(t)
}

// Answers that nobody waits for come when go-redis has made a new connection behind our back: what was missed in
// between must be asked for.
func TestFeed_ThatIsConfirmedTwice_Ends(t *testing.T) {
	addr := servers.Redis(t)
	h := newTeller()
	c := begin(t, solo(addr), h)
	f, err := c.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.pubsub.Subscribe(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	<-f.ended
	h.Want(t, told{})
	if err := f.listen(t.Context(), testChannel); err == nil {
		t.Error("a feed that has ended subscribes")
	}
	h.None(t)
}
