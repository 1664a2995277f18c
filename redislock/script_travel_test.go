package redislock

import "time"

// What a hold that goes on meets in states that are hard to reach: see TestScripts_InStatesThatAreHardToReach.

func checkAdoptedUnclaimed(s *stage) {
	s.acquire(ask{id: "a"})
	s.acquire(ask{id: "b", claim: blink})
	s.acquire(ask{id: "c"})
	s.release("a")
	s.want("pushed", s.pushes(), "G b")
	got := s.run(adoptScript, append(s.keys("d"), s.tomb("b")), append(s.args(ask{id: "d"})[:4], "b")...)
	s.must(got[:2] == "G ", "adoption of what was not claimed: %s", got)
	s.pass(blink) // the claim is over that is made no more
	s.want("its claim", s.renew("b", time.Minute), "l")
	s.want("the lock", s.show(), "d < c")
}
