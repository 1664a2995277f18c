package redislock

import "fmt"

// deathRules bound how long the living wait behind waiters that have died. The model of the hand-off states the same
// bound (queues.bound): for one grant to a dead waiter, counted from when the last of them was heard of.
var deathRules = []rule{
	{
		name: "5 of many who died together one at most is granted the lock",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			for i := range 5 {
				s.acquire(as(ask{id: fmt.Sprint("dead", i), claim: 4 * blink}))
			}
			s.release("a")
			s.want("pushed", s.pushes(), "G dead0")
			s.pass(4 * blink)
			s.want("who lives", s.acquire(as(ask{id: "c"})).verdict, granted)
			s.want("pushed", s.pushes(), "")
		}),
		mutants: []mutant{{"the passing over", "return w[ALIVE] - w[TTL] + w[CLAIM] > ms", "return true"}},
	},
	{
		name: "5 of two who died one after the other each costs a claim, also if only the message was late",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "dead", claim: 4 * blink}))
			s.acquire(as(ask{id: "late", claim: 4 * blink}))
			s.acquire(as(ask{id: "c"}))
			s.release("a")
			s.want("pushed", s.pushes(), "G dead")
			s.pass(2 * blink)
			s.acquire(as(ask{id: "late", claim: 4 * blink}))
			s.pass(2 * blink)
			s.want("c after one claim", s.acquire(as(ask{id: "c"})).verdict, queued)
			s.want("pushed", s.pushes(), "G late")
			s.pass(4 * blink)
			s.want("c after two", s.acquire(as(ask{id: "c"})).verdict, granted)
		}),
		mutants: []mutant{{"the sign of life", "queued[ALIVE], queued[CHANNEL]", "queued[SINCE], queued[CHANNEL]"}},
	},
}
