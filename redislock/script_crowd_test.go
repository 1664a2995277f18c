package redislock

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// What a crowd, and queues of those who hear nothing, come to in orders that are rare.
func TestScripts_OfCrowds_InOrdersThatAreRare(t *testing.T) {
	server := servers.RedisServer(t, nil)
	for _, c := range []struct {
		name  string
		check func(s *stage)
	}{
		{"a group counts its founder when that comes back", checkFounderComesBack},
		{"the ends of a crowd last as long as the lock", checkEndsLast},
		{"many waiters of a process that is gone do not keep a lock free", checkManyDeaf},
		{"who goes on is one who is there", checkGapAtTheEnd},
		{"whoever is next hears of a lock that is kept for less time", checkKeptForLess},
		{"a request that is refused in its own run is told so", checkRefusedInItsOwnRun},
	} {
		t.Run(c.name, func(t *testing.T) { eachWay(t, server, c.check) })
	}
}

func checkFounderComesBack(s *stage) {
	read := func(id, channel string) ask { return ask{id: id, mode: "s", owner: "o", channel: channel} }
	s.acquire(ask{id: "w", mode: "x"})
	s.acquire(read("r1", deaf))
	s.acquire(read("r2", ""))
	s.acquire(ask{id: "z", mode: "s"})
	s.release("w")
	s.want("who founded the group comes back", s.acquire(read("r1", "")).verdict, granted)
	s.want("release", s.release("r1"), "ok")
	s.want("another read of the owner", s.acquire(read("r3", "")).verdict, granted)
	for _, id := range []string{"r2", "r3", "z"} {
		s.want("release", s.release(id), "ok")
	}
	s.want("what is left", s.text("EXISTS", s.lock(), s.prefix+"ends:{a}:lock"), "0")
}

func checkEndsLast(s *stage) {
	s.acquire(ask{id: "s", mode: "s", lease: blink})
	s.acquire(ask{id: "u", mode: "u", lease: blink})
	s.want("renewal", s.renew("u", time.Minute), "k")
	s.pass(blink)
	s.want("a writer", s.acquire(ask{id: "x", mode: "x", way: "t"}).verdict, held)
	s.want("renewal of what has ended", s.renew("s", time.Minute), "l")
	s.want("the lock", s.show(), "u <")
}

func checkManyDeaf(s *stage) {
	s.acquire(ask{id: "h"})
	for i := range 100 {
		s.acquire(ask{id: fmt.Sprint("deaf", i), channel: deaf, claim: time.Minute, place: time.Minute})
	}
	s.acquire(ask{id: "live", claim: time.Minute, place: time.Minute})
	s.release("h")
	s.want("pushed", s.pushes(), "G live")
}

func checkGapAtTheEnd(s *stage) {
	s.acquire(ask{id: "h"})
	for i := range 1100 {
		s.acquire(ask{id: fmt.Sprint("dead", i), claim: time.Millisecond, place: time.Millisecond})
	}
	s.acquire(ask{id: "live", claim: time.Minute, place: time.Minute})
	s.acquire(ask{id: "gone", claim: time.Minute, place: time.Minute})
	s.pass(time.Millisecond)
	s.undo("gone") // which looks at as many of the dead as one run may, and leaves a gap at the end
	s.want("pushed", s.pushes(), "A live")
	s.release("h")
	s.want("pushed", s.pushes(), "G live")
}

func checkKeptForLess(s *stage) {
	s.acquire(ask{id: "h"})
	s.acquire(ask{id: "w", way: "P", place: time.Minute})
	s.end("h", "", 50*time.Millisecond)
	s.want("pushed", s.pushes(), "A w")
	next := s.acquire(ask{id: "w", way: "P", place: time.Minute}).next
	s.must(next > 0 && next <= 50*time.Millisecond, "it is told to come in %v", next)
}

func checkRefusedInItsOwnRun(s *stage) {
	s.acquire(ask{id: "w", mode: "x", lease: blink})
	s.acquire(ask{id: "r", mode: "s", owner: "o"})
	s.acquire(ask{id: "x", mode: "x", owner: "o"})
	s.pass(blink)
	s.want("a write behind a read of its owner", s.acquire(ask{id: "x", mode: "x", owner: "o"}).verdict, stuck)
}
