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

// checkResizedBelowAPush makes a semaphore smaller than what a waiter was granted that does not hear of it. At the head
// of the queue it would keep the others waiting for as long as it asks.
func checkResizedBelowAPush(s *stage) {
	of := func(id string, weight int) ask { return ask{id: id, mode: "s", weight: weight, limit: 3, claim: blink} }
	s.acquire(of("a", 3))
	s.acquire(of("b", 3))
	s.acquire(of("c", 1))
	s.release("a")
	s.want("pushed", s.pushes(), "G b")
	s.want("a limit below it", s.run(resizeScript, []string{s.lock(), s.floor(), s.tomb("")}, "2"), "ok")
	s.pass(blink) // nobody claims it
	s.want("who waits behind it", s.acquire(of("c", 1)).verdict, granted)
	late := s.acquire(of("b", 3))
	s.want("who wants more than there is", late.verdict, conflict)
	s.want("what there is", late.detail, "2")
	s.want("the lock", s.show(), "c <")
}
