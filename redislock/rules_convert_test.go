package redislock

import (
	"fmt"
	"time"
)

var convertRules = []rule{
	{
		name: "12 an upgrade beside an anonymous read goes to the front, and keeps new readers out",
		check: func(s *stage) {
			u := s.acquire(ask{id: "u", mode: "u"})
			s.acquire(ask{id: "r", mode: "s"})
			s.acquire(ask{id: "w"})
			s.want("the upgrade", s.acquire(ask{id: "x", mode: "x", beside: "u"}).verdict, queued)
			s.want("a new reader", s.acquire(ask{id: "n", mode: "s"}).verdict, queued)
			s.want("the lock", s.show(), "u r < x w n")
			s.release("r")
			s.want("pushed", s.pushes(), "G x")
			up := s.acquire(ask{id: "x", mode: "x", beside: "u"})
			s.want("the claim", up.verdict, granted)
			s.must(up.token > u.token && up.nonce == "x", "the upgrade of %+v is %+v", u, up)
			again := s.acquire(ask{id: "s", mode: "s", beside: "u"})
			s.must(again.token == up.token && again.nonce == up.nonce, "re-entry has %+v, want %+v", again, up)
			s.want("release x", s.release("x"), "ok")
			s.want("release s", s.release("s"), "ok")
			again = s.acquire(ask{id: "s2", mode: "s", beside: "u"})
			s.must(again.token == up.token && again.nonce == up.nonce, "after the write re-entry has %+v, want %+v",
				again, up)
			s.want("release u", s.release("u"), "ok")
			s.want("release s2", s.release("s2"), "ok")
			s.want("pushed", s.pushes(), "G w")
		},
		mutants: []mutant{
			{"the front", "\t\tfront(me)\n", "\t\tenter(after, me)\n"},
			{"the newest block", "h[NEWEST] = {token, tokens, nonce}", "h[NEWEST] = nil"},
			{"whose it is", "return h[GROUP] == beside[GROUP]", "return h[ID] == r[ID]"},
		},
	},
	{
		name: "12 an upgrade is refused when its read ends while it waits",
		check: func(s *stage) {
			s.acquire(ask{id: "u", mode: "u"})
			s.acquire(ask{id: "r", mode: "s"})
			s.acquire(ask{id: "x", mode: "x", beside: "u"})
			s.release("u")
			s.want("pushed", s.pushes(), "X x")
			s.want("the lock", s.show(), "r <")
			s.release("r")
			s.want("x asks", s.acquire(ask{id: "x", mode: "x", beside: "u"}).verdict, orphaned)
			s.want("the lock", s.show(), "<")
		},
		mutants: []mutant{
			{"the refusal", "if verdict == 'stuck' or verdict == 'lost' then", "if verdict == 'stuck' then"},
			{"the verdict", "\tif not own then\n\t\treturn 'lost'\n", "\tif not own then\n\t\treturn 'apart'\n"},
		},
	},
	{
		name: "12 nothing is granted beside what is over, or kept closed after its release",
		check: func(s *stage) {
			g := s.acquire(ask{id: "u", mode: "u"})
			s.breakLock(g.token)
			s.pushes()
			got := s.acquire(ask{id: "x", mode: "x", beside: "u"})
			s.want("beside what was broken", got.verdict, orphaned)
			s.want("why", got.detail, "broken")
			s.want("the lock", s.show(), "<")
			s.acquire(ask{id: "k", mode: "u"})
			s.want("release k", s.end("k", "", time.Minute), "ok")
			s.want("beside what is kept", s.acquire(ask{id: "y", mode: "s", beside: "k"}).verdict, orphaned)
		},
		mutants: []mutant{
			{
				"the tombstone", "return 'lost ' .. (call('GET', KEYS[4]) or 'expired')\n\telseif not free",
				"return 'lost expired'\n\telseif not free",
			},
			{"the live", "if beside and live(beside) then", "if beside then"},
		},
	},
	{
		name: "12 a reader that wants to write is stuck, a writer may read",
		check: func(s *stage) {
			s.acquire(ask{id: "r", mode: "s"})
			s.want("its write", s.acquire(ask{id: "x", mode: "x", beside: "r"}).verdict, stuck)
			s.want("its try to write", s.acquire(ask{id: "y", mode: "x", beside: "r", way: "t"}).verdict, stuck)
			s.release("r")
			w := s.acquire(ask{id: "w"}) // thin
			s.acquire(ask{id: "v"})
			read := s.acquire(ask{id: "s", mode: "s", beside: "w"})
			s.must(read.verdict == granted && read.token == w.token && read.nonce == w.nonce, "%+v beside %+v", read, w)
			s.release("w")
			s.want("the lock", s.show(), "s < v")
			s.release("s")
			s.want("pushed", s.pushes(), "G v")
		},
		mutants: []mutant{{"it", "\treturn 'stuck' -- a reader", "\treturn 'apart' -- a reader"}},
	},
	{
		name: "12 an upgrade that lets its push pass goes to the front again, however often",
		check: func(s *stage) {
			x := ask{id: "x", mode: "x", beside: "u", claim: 4 * blink, place: time.Minute}
			s.acquire(ask{id: "u", mode: "u"})
			s.acquire(ask{id: "r0", mode: "s"})
			s.acquire(x)
			s.acquire(ask{id: "silent", claim: blink})
			for i := range 4 { // in between readers get in, because nobody is heard of
				s.want("its heartbeat", s.acquire(x).queuePlace, 1)
				s.release(fmt.Sprint("r", i))
				s.want("pushed", s.pushes(), "G x")
				s.pass(4 * blink)
				s.want("a reader", s.acquire(ask{id: fmt.Sprint("r", i+1), mode: "s"}).verdict, granted)
			}
			s.want("the lock", s.show(), "u r4 < x silent")
		},
		mutants: []mutant{{"it", "judge(h) == 'upgrades' and 1 or h[MISSED] + 1", "h[MISSED] + 1"}},
	},
}
