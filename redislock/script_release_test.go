package redislock

import (
	"fmt"
	"strings"
	"time"
)

// What a release and a requeue leave, in states that are hard to reach: see TestScripts_InStatesThatAreHardToReach.

func checkRequeue(s *stage) {
	s.acquire(ask{id: "a"})
	s.acquire(ask{id: "b"})
	s.want("requeue", s.requeue("a", ask{id: "c"}).verdict, queued)
	s.want("pushed", s.pushes(), "G b")
	s.want("the lock", s.show(), "b < c")
	s.want("a copy of the requeue", s.requeue("a", ask{id: "c"}).verdict, queued)
	s.want("the lock", s.show(), "b < c")
	got := s.run(s.book.requeue, append(s.keys("d"), s.tomb("a")), append(s.args(ask{id: "d"}), "a", "", "10000")...)
	s.want("requeue of what is not held", got, "lost taken")
	s.release("b")
	s.want("requeue with nobody waiting", s.requeue("c", ask{id: "e"}).verdict, granted)
	s.want("the lock", s.show(), "e <")
}

func checkKept(s *stage) {
	g := s.acquire(ask{id: "a", mode: "x", owner: "A"})
	s.want("release", s.end("a", "", time.Minute), "ok")
	s.want("release again", s.release("a"), "lost gone")
	s.want("renewal", s.renew("a", time.Minute), "l")
	s.want("a copy", s.acquire(ask{id: "a", mode: "x", owner: "A"}).verdict, over)
	s.want("its owner", s.acquire(ask{id: "b", mode: "x", owner: "A", way: "t"}).verdict, held)
	s.want("another", s.acquire(ask{id: "c"}).verdict, queued)
	s.want("break", s.breakLock(g.token), "ok")
	s.want("pushed", s.pushes(), "G c") // and no word of a loss
}

func checkQuickRelease(s *stage) {
	for _, quick := range []bool{true, false} {
		s.do("DEL", s.lock())
		first := s.acquire(ask{id: "a"})
		s.acquire(ask{id: "b", tokens: 5, claim: 1500 * time.Millisecond, lease: 20 * time.Second})
		s.acquire(ask{id: "c"})
		if quick {
			s.want("release", s.release("a"), "ok")
		} else {
			s.want("release", s.end("a", "r", 0), "ok")
			s.do("DEL", s.tomb("a"))
		}
		p := s.push()
		s.want("the push", fmt.Sprint(p.tokens, p.nonce, p.lease, p.token > first.token),
			fmt.Sprint(5, "b", 1500*time.Millisecond, true))
		info, _ := s.look()
		s.must(len(info.Holders) == 1 && info.Holders[0].Token == p.token && info.Holders[0].Label == "b" &&
			time.Until(info.Holders[0].Until) <= 1500*time.Millisecond, "holders %+v", info.Holders)
		claim := s.acquire(ask{id: "b", tokens: 5, lease: 20 * time.Second})
		s.want("the claim", fmt.Sprint(claim.token, claim.tokens, claim.nonce), fmt.Sprint(p.token, 5, "b"))
		s.want("the floor", s.text("GET", s.floor()), fmt.Sprint(p.token+4))
		s.want("the lock", s.show(), "b < c")
	}
}

func checkQuickRequeue(s *stage) {
	for _, kind := range []string{"", "r"} { // r is for the general part
		s.do("DEL", s.lock())
		s.acquire(ask{id: "a"})
		s.acquire(ask{id: "b", tokens: 5, claim: 1500 * time.Millisecond, lease: 20 * time.Second})
		s.acquire(ask{id: "c"})
		got := s.requeueAs(kind, "a", ask{id: "d", lease: 3 * time.Minute})
		s.do("DEL", s.tomb("a"))
		p := s.push()
		s.want("the push", fmt.Sprint(p.tokens, p.nonce, p.lease), fmt.Sprint(5, "b", 1500*time.Millisecond))
		s.want("the answer", fmt.Sprint(got.verdict, got.queuePlace, got.holder.token), fmt.Sprint(queued, 2, p.token))
		s.must(strings.Contains(got.holder.meta, `"l":"b"`), "it waits behind %+v", got.holder)
		s.want("the floor", s.text("GET", s.floor()), fmt.Sprint(p.token+4))
		s.want("the lock", s.show(), "b < c d")
		s.want("a heartbeat", s.acquire(ask{id: "d", lease: 3 * time.Minute}).queuePlace, 2)
		s.release("b")
		s.release("c")
		s.want("the pushes", s.pushes(), "G c, G d")
		s.want("the lock", s.show(), "d <")
	}
}

func checkUnheardRequeue(s *stage) {
	for _, kind := range []string{"", "r"} {
		s.do("DEL", s.lock())
		s.acquire(ask{id: "a"})
		s.acquire(ask{id: "b", channel: deaf})
		s.acquire(ask{id: "c"})
		s.want("the answer", s.requeueAs(kind, "a", ask{id: "d"}).verdict, queued)
		s.do("DEL", s.tomb("a"))
		s.want("the pushes", s.pushes(), "G c")
		s.want("the lock", s.show(), "c < b d")
		s.want("another's hold, without a place", s.run(s.book.requeue, append(s.keys("e"), s.tomb("a")),
			append(s.args(ask{id: "e"}), "a", kind, "10000")...), "lost taken")
		s.want("the lock", s.show(), "c < b d")
	}
}
