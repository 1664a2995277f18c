package redislock

import (
	"time"
)

var identityRules = []rule{
	{
		name: "1 re-entry answers the nonce and the token that are there",
		check: func(s *stage) {
			first := s.acquire(ask{id: "a", mode: "x", owner: "A", tokens: 4})
			again := s.acquire(ask{id: "b", mode: "x", owner: "A", tokens: 4})
			s.want("verdict", again.verdict, granted)
			s.want("nonce", again.nonce, first.nonce)
			s.want("token", again.token, first.token)
			s.want("tokens", again.tokens, first.tokens)
		},
		mutants: []mutant{
			{"the nonce", "newest[1], newest[2], newest[3]", "newest[1], newest[2], w[ID]"},
			{
				"the token", "\tlocal token, tokens, nonce\n\tif verdict == 'reenters' then",
				"\tlocal token, tokens, nonce\n\tif false then",
			},
		},
	},
	{
		name: "1 an upgrade's token stays the lock's, also when the write has ended",
		check: func(s *stage) {
			s.acquire(ask{id: "u", mode: "u", owner: "A"})
			up := s.acquire(ask{id: "x", mode: "x", owner: "A"})
			s.release("x")
			again := s.acquire(ask{id: "r", mode: "s", owner: "A"})
			s.want("token", again.token, up.token)
			s.want("nonce", again.nonce, "x")
			s.want("break", s.breakLock(up.token), "ok")
			s.want("the lock", s.show(), "<")
		},
		mutants: []mutant{
			{"the newest block", "h[NEWEST] = {token, tokens, nonce}", "h[NEWEST] = nil"},
		},
	},
	{
		name: "1 release and renewal match one hold, and the lock is held while any lives",
		check: func(s *stage) {
			for _, id := range []string{"a", "b", "c"} {
				s.acquire(ask{id: id, mode: "x", owner: "A"})
			}
			s.want("release b", s.release("b"), "ok")
			s.want("renew b", s.renew("b", time.Minute), "l")
			s.want("release b again", s.release("b")[:4], "lost")
			s.want("the lock", s.show(), "a c <")
			s.want("release a", s.release("a"), "ok")
			s.want("another", s.acquire(ask{id: "z", way: "t"}).verdict, held)
			s.want("release c", s.release("c"), "ok")
			s.want("another", s.acquire(ask{id: "z", way: "t"}).verdict, granted)
		},
		mutants: []mutant{
			{
				"the hold's own id in a release", "\t\tif h[ID] == id then\n\t\t\treturn h",
				"\t\tif h[NONCE] == id or h[ID] ~= h[NONCE] then\n\t\t\treturn h",
			},
			{"the hold's own id in a renewal", "if h[HOLD_ID] == id then", "if true then"},
		},
	},
	{
		name: "1 re-entry refreshes its own hold only",
		check: func(s *stage) {
			s.acquire(ask{id: "a", mode: "x", owner: "A", lease: 2 * blink})
			s.acquire(ask{id: "b", mode: "x", owner: "A", lease: time.Minute})
			s.pass(2 * blink)
			s.want("renew a", s.renew("a", time.Minute), "l")
			s.want("renew b", s.renew("b", time.Minute), "k")
		},
		mutants: []mutant{{
			"the hold's own end", "\tlocal token, tokens, nonce\n",
			"\tlocal token, tokens, nonce\n\tfor _, h in ipairs(holds) do\n\t\th[UNTIL] = ms + lasts\n\tend\n",
		}},
	},
	{
		name: "2 an owner without a name never re-enters",
		check: func(s *stage) {
			s.acquire(ask{id: "a"})
			s.want("the same client again", s.acquire(ask{id: "b"}).verdict, queued)
			s.want("a try of the same client", s.acquire(ask{id: "c", way: "t"}).verdict, held)
			s.want("a named owner", s.acquire(ask{id: "d", mode: "x", owner: "A", way: "t"}).verdict, held)
		},
		mutants: []mutant{{
			"it", "\tif r[OWNER] == '' and r[BESIDE] == '' then\n\t\treturn 'apart'\n\tend\n\tlocal own = kin(r)\n",
			"\tlocal own = function(h) return h[OWNER] == r[OWNER] end\n",
		}},
	},
	{
		name: "2 a grant admits the owner's other requests",
		check: func(s *stage) {
			s.acquire(ask{id: "z"})
			s.acquire(ask{id: "a", mode: "x", owner: "A"})
			s.acquire(ask{id: "b"})
			s.acquire(ask{id: "c", mode: "x", owner: "A"})
			s.release("z")
			s.want("pushed", s.pushes(), "G a, G c")
			s.want("the lock", s.show(), "a c < b")
		},
		mutants: []mutant{{"it", "if follow(w[OWNER]) then", "if false then"}},
	},
	{
		name: "2 it admits a request whose push was not heard as soon as that asks",
		check: func(s *stage) {
			s.acquire(ask{id: "z"})
			s.acquire(ask{id: "a", mode: "x", owner: "A", channel: deaf})
			s.acquire(ask{id: "b", mode: "x", owner: "A"})
			s.release("z")
			s.want("the lock", s.show(), "b < a")
			s.want("a asks", s.acquire(ask{id: "a", mode: "x", owner: "A"}).verdict, granted)
		},
		mutants: []mutant{{"it", "judge(queued) == 'reenters'", "false"}},
	},
	{
		name: "3 a late copy of what was undone is refused",
		check: func(s *stage) {
			s.want("undo of what never came", s.undo("a"), "ok")
			s.want("a late", s.acquire(ask{id: "a"}).verdict, over)
			s.acquire(ask{id: "b"})
			s.want("undo of a hold", s.undo("b"), "ok")
			s.want("b late", s.acquire(ask{id: "b"}).verdict, over)
			s.acquire(ask{id: "c"})
			s.acquire(ask{id: "d"})
			s.want("undo of a wait", s.undo("d"), "ok")
			s.want("d late", s.acquire(ask{id: "d"}).verdict, over)
			s.want("release of what is in doubt", s.end("c", "r", 0), "ok")
			s.want("c late", s.acquire(ask{id: "c"}).verdict, over)
			s.want("the lock", s.show(), "<")
			lasts := s.number("PTTL", s.tomb("a"))
			s.must(lasts > 9000 && lasts <= 10000, "the tombstone lasts %d ms", lasts)
		},
		mutants: []mutant{
			{"the look at the tombstone", "if known[3] then\n\treturn known[3]\nend\n", ""},
			{"the tombstone", "\tbury(KEYS[3], 'gone', ARGV[3])\n", ""},
		},
	},
	{
		name: "3 a late copy of what was broken is refused",
		check: func(s *stage) {
			g := s.acquire(ask{id: "a"})
			s.want("break", s.breakLock(g.token), "ok")
			s.want("a late", s.acquire(ask{id: "a"}).verdict, broken)
			s.want("told", s.pushes(), "B a")
		},
		mutants: []mutant{
			{"the tombstone", "\tbury(KEYS[3] .. h[ID], 'broken', math.max(h[LEASE], 1000))", "\tdo end"},
		},
	},
}

var queueRules = []rule{
	{
		name: "12 re-entry passes by the queue",
		check: func(s *stage) {
			s.acquire(ask{id: "a", mode: "x", owner: "A"})
			s.acquire(ask{id: "b"})
			s.want("re-entry", s.acquire(ask{id: "c", mode: "x", owner: "A"}).verdict, granted)
		},
		mutants: []mutant{{"it", "local free = verdict == 'reenters' or fits", "local free = fits"}},
	},
	{
		name: "12 an upgrade goes to the front, and keeps new readers out",
		check: func(s *stage) {
			s.acquire(ask{id: "u", mode: "u", owner: "A"})
			s.acquire(ask{id: "r", mode: "s"})
			s.acquire(ask{id: "w", mode: "x"})
			s.want("the upgrade", s.acquire(ask{id: "x", mode: "x", owner: "A"}).verdict, queued)
			s.want("a new reader", s.acquire(ask{id: "n", mode: "s"}).verdict, queued)
			s.want("the lock", s.show(), "u r < x w n")
			s.release("r")
			s.want("pushed", s.pushes(), "G x")
		},
		mutants: []mutant{
			{"the front", "\t\tfront(me)\n", "\t\tenter(after, me)\n"},
			{"the closed door", "(verdict == 'upgrades' or deserted())", "(true)"},
		},
	},
	{
		name: "12 a reader that wants to write is stuck",
		check: func(s *stage) {
			s.acquire(ask{id: "r", mode: "s", owner: "A"})
			s.want("its write", s.acquire(ask{id: "x", mode: "x", owner: "A"}).verdict, stuck)
			s.want("its try to write", s.acquire(ask{id: "y", mode: "x", owner: "A", way: "t"}).verdict, stuck)
			s.want("the lock", s.show(), "r <")
		},
		mutants: []mutant{{"it", "\treturn 'stuck' -- a reader", "\treturn 'apart' -- a reader"}},
	},
	{
		name: "12 another limit is a conflict while the lock is in use",
		check: func(s *stage) {
			s.acquire(ask{id: "a", mode: "s", limit: 3})
			s.want("another limit", s.acquire(ask{id: "b", mode: "s", limit: 4}).verdict, conflict)
			s.want("the same", s.acquire(ask{id: "c", mode: "s", limit: 3}).verdict, granted)
			s.release("a")
			s.release("c")
			s.want("another limit of a free lock", s.acquire(ask{id: "d", mode: "s", limit: 4}).verdict, granted)
		},
		mutants: []mutant{
			{"it", "if me[MODE] ~= 'x' and limit ~= '' and limit ~= asked then", "if false then"},
		},
	},
	{
		name: "12 a weight that does not fit waits, and nobody overtakes it",
		check: func(s *stage) {
			s.acquire(ask{id: "a", mode: "s", limit: 3, weight: 2})
			s.want("a big one", s.acquire(ask{id: "b", mode: "s", limit: 3, weight: 2}).verdict, queued)
			s.want("a small one", s.acquire(ask{id: "c", mode: "s", limit: 3}).verdict, queued)
			s.release("a")
			s.want("pushed", s.pushes(), "G b, G c")
		},
		mutants: []mutant{
			{"the weight", "r[WEIGHT] <= capacity() - used", "true"},
			{"the order", "(verdict == 'upgrades' or deserted())", "(true)"},
		},
	},
	{
		name: "12 a try in front of waiters fails, and does not queue",
		check: func(s *stage) {
			s.acquire(ask{id: "a", mode: "s"})
			s.acquire(ask{id: "w", mode: "x"})
			s.want("a reader's try", s.acquire(ask{id: "t", mode: "s", way: "t"}).verdict, held)
			s.want("a writer's try", s.acquire(ask{id: "y", mode: "x", way: "t"}).verdict, held)
			s.want("the lock", s.show(), "a < w")
		},
		mutants: []mutant{
			{"the refusal", "elseif not free and tries then", "elseif false then"},
			{"the order", "(verdict == 'upgrades' or deserted())", "(true)"},
		},
	},
}
