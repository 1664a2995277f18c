package redislock

import (
	"fmt"
	"strings"
	"time"
)

// Locks whose time to live somebody has removed (PERSIST): see lasting of text.lua.

// checkPersisted removes it in front of each script that reads it.
func checkPersisted(s *stage) {
	const lease = time.Minute
	for name, other := range map[string]func() string{
		"a try":       func() string { return s.acquire(ask{id: "b", way: "t"}).verdict.String() },
		"a waiter":    func() string { return s.acquire(ask{id: "b"}).verdict.String() },
		"a reader":    func() string { return s.acquire(ask{id: "b", mode: "s", way: "t"}).verdict.String() },
		"an undo":     func() string { return s.undo("b") },
		"a break":     func() string { return strings.Fields(s.breakLock(1))[0] },
		"several":     func() string { return s.several("b", "other")[0] },
		"a retention": func() string { return s.acquire(ask{id: "b", retains: true, way: "t"}).verdict.String() },
	} {
		s.do("DEL", s.lock(), s.tomb("b"))
		g := s.acquire(ask{id: "a", lease: lease})
		s.must(s.text("PERSIST", s.lock()) == "1", "%s: the lock had no time to live", name)
		info, _ := s.look()
		s.must(len(info.Holders) == 1 && time.Until(info.Holders[0].Until) > lease/2, "%s: operators see %+v",
			name, info)
		got := other()
		s.must(got != granted.String() && got != "G", "%s beside the holder: %v", name, got)
		lasts := s.number("PTTL", s.lock())
		s.must(lasts > 0, "%s leaves a lock without an end", name)
		s.want("the renewal after "+name, s.renew("a", lease)[:1] != "l", true)
		copied := s.acquire(ask{id: "a", lease: lease})
		s.want("the hold after "+name, fmt.Sprint(copied.verdict, copied.token), fmt.Sprint(granted, g.token))
	}
}

// checkPersistedOfTheDead removes it from a lock whose holder is never heard of again.
func checkPersistedOfTheDead(s *stage) {
	for name, ask := range map[string]ask{
		"a plain request": {id: "b"}, "a named owner": {id: "b", mode: "x", owner: "B"},
	} {
		s.do("DEL", s.lock())
		s.acquire(askFor("a", blink))
		s.do("PERSIST", s.lock())
		ask.way = "t"
		s.want(name+" meanwhile", s.acquire(ask).verdict, held)
		s.pass(blink)
		s.want(name+" after the lease", s.acquire(ask).verdict, granted)
	}
}

func askFor(id string, lease time.Duration) ask { return ask{id: id, lease: lease} }

// checkPersistedAfterAnExtension: the lease that counts then is the longest that its owner may rely on.
func checkPersistedAfterAnExtension(s *stage) {
	s.acquire(ask{id: "a", lease: time.Second})
	s.want("an extension", s.renew("a", time.Hour), "k")
	s.want("a renewal", s.renew("a", time.Second), "k")
	s.do("PERSIST", s.lock())
	s.want("another", s.acquire(ask{id: "b"}).verdict, queued)
	s.must(s.number("PTTL", s.lock()) > (59*time.Minute).Milliseconds(), "it lasts %d ms", s.number("PTTL", s.lock()))
}

// checkPersistedRetention: a renewal of a retained lock that comes late, when its client has long taken the lock again,
// must not end it.
func checkPersistedRetention(s *stage) {
	retains := func(pass int, mark, owner string) string {
		return s.run(s.book.renew, []string{s.lock()}, "a", "60000", fmt.Sprint(pass),
			fmt.Sprintf(`{"r":%s,"o":"%s"}`, mark, owner))
	}
	s.acquire(ask{id: "a", retains: true})
	s.want("retained", retains(3, "2", ""), "k")
	s.do("PERSIST", s.lock())
	s.want("a late renewal", retains(2, "1", "A"), "k")
	s.want("the lock", s.text("EXISTS", s.lock()), "1")
	s.want("another", s.acquire(ask{id: "b", way: "t"}).verdict, held)
}

// checkLostEndsOfARenewal has the server lose the sorted set beside a crowd, and a renewal be the first to see that.
func checkLostEndsOfARenewal(s *stage) {
	s.acquire(ask{id: "a", mode: "s"})
	s.acquire(ask{id: "b", mode: "s"})
	s.do("DEL", s.prefix+"ends:{a}:lock")
	s.want("renewal", s.renew("a", time.Minute), "k")
	s.must(s.number("PTTL", s.prefix+"ends:{a}:lock") > 0, "the set has no end")
	s.want("a writer", s.acquire(ask{id: "w", way: "t", mode: "x"}).verdict, held)
	s.want("renewal of the other", s.renew("b", time.Minute), "k")
	s.want("the lock", s.show(), "a b <")
	s.want("release", s.release("a"), "ok")
	s.want("release", s.release("b"), "ok")
	s.want("what is left", s.text("EXISTS", s.lock(), s.prefix+"ends:{a}:lock"), "0")
}

// several asks for the lock and another one in one step, and returns the words of the answer.
func (s *stage) several(id, other string) []string {
	mine, its := s.args(ask{id: id, way: "t"}), s.args(ask{id: other, way: "t"})
	keys := append(s.keys(id), s.prefix+other, s.floor(), s.tomb(other))
	return strings.Fields(s.run(multiScript, keys, append(mine[:4:4], its[:4]...)...))
}
