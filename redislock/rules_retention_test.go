package redislock

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// retentionRules are what lets a client keep a lock that nobody holds, until another wants it. Marked holds are
// anonymous; that the others take the general way here shows that the rules do not depend on how a hold is stored.
var retentionRules = []rule{
	{
		name: "who is the first in the queue or refused has the client told that may keep the lock, and so has each " +
			"heartbeat",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			tell := func(what string, a ask) {
				s.acquire(as(a))
				s.want(what, s.pushes(), "W a")
			}
			s.acquire(as(ask{id: "a", retains: true}))
			s.want("nobody has asked", s.pushes(), "")
			tell("a try", ask{id: "t", way: "t"})
			tell("a try that would queue", ask{id: "l", way: "l"})
			tell("the first in the queue", ask{id: "b"})
			s.acquire(as(ask{id: "c"}))
			s.pushes() // the second need not, but the general part does not look
			tell("a try behind them", ask{id: "t", way: "t"})
			tell("the heartbeat of the first", ask{id: "b"})
			tell("the heartbeat of the second", ask{id: "c"})
		}),
		mutants: []mutant{
			{"the word of who is queued", "\tif refused or first < after then\n", "\tif refused then\n"},
			{"the word of who is refused", "\tif refused or first < after then\n", "\tif first < after then\n"},
			{"it, in the quick part", `if (f[4] or f[2] == f[3]) and`, "if false and"},
			{"the heartbeat, in the quick part", `if (f[4] or f[2] == f[3]) and`, "if f[2] == f[3] and"},
		},
	},
	{
		name: "in a queue that moves nobody is told again and again",
		check: func(s *stage) {
			for _, id := range []string{"a", "b", "c"} {
				s.acquire(ask{id: id, retains: true})
			}
			s.pushes()
			for i, id := range []string{"a", "b", "c", "a0", "b1"} { // each gives the lock back and comes again
				s.release(id)
				s.pushes()
				s.acquire(ask{id: fmt.Sprint(id, i), retains: true})
				s.want("told", s.pushes(), "")
			}
		},
		mutants: []mutant{{"who stands before", `if (f[4] or f[2] == f[3]) and`, "if"}},
	},
	{
		name: "nor by a requeue behind others",
		check: func(s *stage) {
			for _, id := range []string{"a", "b", "c"} {
				s.acquire(ask{id: id, retains: true})
			}
			s.pushes()
			s.requeue("a", ask{id: "d", retains: true})
			s.want("told", s.pushes(), "G b")
		},
		mutants: []mutant{{"who stands before", "if id and lock[2] == number then", "if id then"}},
	},
	{
		name: "who is the first after others have left has the client told as well",
		check: func(s *stage) {
			s.acquire(ask{id: "a", retains: true})
			s.acquire(ask{id: "b"})
			s.undo("b")
			s.pushes()
			s.acquire(ask{id: "c"})
			s.want("told", s.pushes(), "W a")
		},
		mutants: []mutant{{"the first, in the quick part", `if (f[4] or f[2] == f[3]) and`, "if f[4] and"}},
	},
	{
		name: "a hold that was pushed or requeued is told of as well",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a", retains: true}))
			s.acquire(as(ask{id: "b", retains: true}))
			s.pushes()
			s.release("a")
			s.want("pushed", s.pushes(), "G b")
			refused := s.acquire(as(ask{id: "t", way: "t"}))
			s.must(strings.HasPrefix(refused.holder.meta, `{"r":1,`), "it is marked as %s", refused.holder.meta)
			s.want("told", s.pushes(), "W b")
			s.acquire(as(ask{id: "c", retains: true}))
			s.want("told", s.pushes(), "W b")
			s.requeue("b", as(ask{id: "d"}))
			s.want("pushed by a requeue, with who has given", s.pushes(), "G c, W c")
		}),
		mutants: []mutant{
			{"the word of who is queued", "\tif refused or first < after then\n", "\tif refused then\n"},
		},
	},
	{
		name: "who has no mark, or holds no more, is told nothing",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			for _, id := range []string{"b", "c", "b"} {
				s.acquire(as(ask{id: id, retains: true}))
			}
			s.acquire(as(ask{id: "t", way: "t", retains: true}))
			s.want("told", s.pushes(), "")
			s.do("DEL", s.lock())
			s.acquire(as(ask{id: "k", retains: true}))
			s.want("kept closed", s.end("k", "", time.Minute), "ok")
			s.acquire(as(ask{id: "d"}))
			s.want("told", s.pushes(), "")
		}),
		mutants: []mutant{
			{"the mark", "if string.sub(h[META], 1, 5) == RETAINS and live(h) then", "if live(h) then"},
			{"the end", "== RETAINS and live(h) then", "== RETAINS then"},
		},
	},
	{
		name: "a renewal says that others wait",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.want("alone", s.renew("a", time.Minute), "k")
			s.acquire(as(ask{id: "b"}))
			s.want("with a waiter", s.renew("a", time.Minute), "w")
			s.acquire(as(ask{id: "c"}))
			s.release("a")
			s.want("a pushed hold's", s.renew("b", time.Minute), "w")
			s.release("b")
			s.want("when nobody is left", s.renew("c", time.Minute), "k")
		}),
		mutants: []mutant{{"it", "local kept = f[5] == f[6] and 'k' or 'w'", "local kept = 'k'"}},
	},
	{
		name: "a retained lock lasts for its lease from now, also if that is less, and nobody is seen to hold it",
		check: inEachForm(func(s *stage, a ask) {
			s.want("renewal", s.renewAs(a, 4*blink, 1, retained)[:1], s.kept())
			h := s.holder()
			s.must(h.Retained && h.Owner == "" && h.Client == "host 7" && time.Until(h.Until) <= 4*blink,
				"it is seen as %+v", h)
			refused := s.acquire(ask{id: "t", way: "t"})
			s.want("a try hears of it", refused.holder.heldError(driver.Key{}).Retains, true)
			s.want("taken over", s.renewAs(a, time.Minute, 2, mayRetain), s.kept())
			h = s.holder()
			s.must(!h.Retained && time.Until(h.Until) > 50*time.Second, "taken over it is seen as %+v", h)
			s.want("renewal", s.renewAs(a, 4*blink, 2, retained), s.kept())
			s.pass(4 * blink)
			s.want("a renewal after its end", s.renewAs(a, time.Minute, 3, mayRetain), "l")
		}),
		mutants: []mutant{
			{"the shorter lease", "\telseif is and not late then\n\t\treturn till, late\n", ""},
		},
	},
	{
		name: "a renewal that comes late neither shortens a lease nor shows a former owner",
		check: inEachForm(func(s *stage, a ask) {
			s.want("a later owner", s.renewAs(a, time.Minute, 2, mayRetain), s.kept())
			before := s.acquire(ask{id: "t", way: "t"}).holder
			for mark := unmarked; mark <= retained; mark++ {
				s.want("a late renewal", s.renewAs(a, 2*blink, 1, mark), s.kept())
				after := s.acquire(ask{id: "t", way: "t"}).holder
				s.want("the token in use", after.token, before.token)
				s.want("who is seen", after.meta, before.meta)
				s.must(after.until >= before.until-100, "it has shortened the lease by %d ms", before.until-after.until)
			}
			s.want("a late renewal that lengthens", s.renewAs(a, 2*time.Minute, 1, retained), s.kept())
			h := s.holder()
			s.must(!h.Retained && time.Until(h.Until) > 110*time.Second, "it is seen as %+v", h)
		}),
		mutants: []mutant{
			{"the lease", "elseif is and not late then", "elseif is then"},
			{"it", "local late = passed > pass or", "local late ="},
			{"the pass", "if shown ~= lock and not late then", "if shown ~= lock then"},
			{"the pass, in text", "\tif late then\n\t\tpass, meta", "\tif false then\n\t\tpass, meta"},
			{"the pass, in a list", "\t\t\tif not late then\n", "\t\t\tif true then\n"},
		},
	},
	{
		name: "what comes late does not lengthen the lease of a lock that nobody holds",
		check: inEachForm(func(s *stage, a ask) {
			s.want("renewal", s.renewAs(a, 10*time.Second, 2, retained), s.kept())
			before := s.holder()
			still := func(what string) {
				h := s.holder()
				s.must(h.Retained && h.Owner == "" && h.Until.Sub(before.Until) < time.Second,
					"after %s it is seen as %+v", what, h)
			}
			for mark := unmarked; mark <= retained; mark++ {
				s.want("a renewal of an earlier owner", s.renewAs(a, time.Minute, 1, mark), s.kept())
				still("a renewal of an earlier owner")
			}
			s.want("a renewal of the last one", s.renewAs(a, time.Minute, 2, mayRetain), s.kept())
			still("a renewal of the last one")
			s.want("a copy", s.acquire(a).token, before.Token)
			still("a copy of the request")
			s.want("one that goes on", s.renewAs(a, 20*time.Second, 2, retained), s.kept())
			s.must(s.holder().Until.Sub(before.Until) > 5*time.Second, "a later one does not lengthen it")
			s.want("taken over", s.renewAs(a, time.Minute, 3, mayRetain), s.kept())
			s.must(time.Until(s.holder().Until) > 50*time.Second, "taken over it is seen as %+v", s.holder())
		}),
		mutants: []mutant{
			{"it", "\tif late and was then\n\t\treturn before, late\n\telseif", "\tif"},
			{"it, for a renewal of the last owner", "or was and not is and passed == pass", ""},
			{"it, for a copy", "\t\t\tlease = 0\n", ""},
		},
	},
}

// inEachForm runs a check with a hold that is stored as a string, as text in a hash, and in a list.
func inEachForm(check func(s *stage, a ask)) func(s *stage) {
	return func(s *stage) {
		a := ask{id: "a", retains: true, tokens: 4}
		s.acquire(a)
		check(s, a)
		s.do("DEL", s.lock())
		s.acquire(a)
		s.acquire(ask{id: "b", channel: deaf})
		check(s, a)
		s.do("DEL", s.lock())
		a.mode, a.owner = "x", "A"
		s.acquire(a)
		s.acquire(ask{id: "b", channel: deaf})
		check(s, a)
	}
}

// renewAs renews the hold of a, as it passes on inside its process.
func (s *stage) renewAs(a ask, lease time.Duration, pass int, mark retention) string {
	m := meta{mark, fmt.Sprint("owner ", pass), "host 7", a.id}
	if mark == retained {
		m.Owner = ""
	}
	return s.run(s.book.renew, []string{s.lock()}, a.id, inMillis(lease), fmt.Sprint(pass), string(appendMeta(nil, m)))
}

// holder is the first holder that operators see.
func (s *stage) holder() (h driver.Holder) {
	if info, _ := s.look(); len(info.Holders) > 0 {
		h = info.Holders[0]
	}
	return h
}

// kept is what a renewal answers that finds its hold.
func (s *stage) kept() string {
	if info, _ := s.look(); len(info.Waiters) > 0 {
		return "w"
	}
	return "k"
}
