package redislock

import (
	"fmt"
	"strings"
	"time"
)

// writes returns how often the server's data has been changed.
func (s *stage) writes() int64 {
	if s.err != nil {
		return 0
	}
	info, err := s.server.Info(s.ctx, "persistence")
	if err != nil {
		s.err = err
	}
	var n int64
	_, _ = fmt.Sscan(info["rdb_changes_since_last_save"], &n)
	return n
}

// writesWith notes an error unless f writes.
func (s *stage) writesWith(what string, f func()) {
	before := s.writes()
	f()
	s.must(s.writes() > before, "%s does not write, so a WAIT after it waits for nothing", what)
}

// full runs f while the server has no memory to give.
func (s *stage) full(f func()) {
	s.do("CONFIG", "SET", "maxmemory", "1")
	f()
	err := s.err
	s.err = nil
	s.do("CONFIG", "SET", "maxmemory", "0")
	s.err = err
}

var writingRules = []rule{
	{
		name: "9 every acquire, retry, heartbeat and renewal writes",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.writesWith("an acquire", func() { s.acquire(as(ask{id: "a"})) })
			s.writesWith("a renewal that changes nothing", func() { s.renew("a", time.Second) })
			s.writesWith("a retry", func() { s.acquire(as(ask{id: "a"})) })
			s.writesWith("a second retry", func() { s.acquire(as(ask{id: "a", lease: time.Second})) })
			s.writesWith("a renewal beside waiters", func() { s.renew("a", time.Second) })
			s.writesWith("queueing", func() { s.acquire(as(ask{id: "b"})) })
			s.writesWith("a heartbeat", func() { s.acquire(as(ask{id: "b"})) })
			s.release("a")
			s.writesWith("a claim", func() { s.acquire(as(ask{id: "b"})) })
		}),
		mutants: []mutant{
			{"the write of a retry", "ms + lease), HELD\n\t\ttouch(hold)\n", "ms + lease), HELD\n"},
			{"the write of a renewal", "\tcall('PEXPIRE', key, lasts)", ""},
			{"the write of a heartbeat", "\tput(place, queued)\n", ""},
		},
	},
	{
		name: "10 a push that fails undoes nothing",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b"}))
			s.do("ACL", "SETUSER", "mute", "on", "nopass", "+@all", "~*", "resetchannels")
			s.do("AUTH", "mute", "any")
			s.want("a release that may not publish", s.release("a"), "ok")
			s.do("AUTH", "default", "any")
			s.want("the lock", s.show(), "b <")
		}),
		mutants: []mutant{
			{"pcall", "redis.pcall('PUBLISH', w[CHANNEL], text)", "call('PUBLISH', w[CHANNEL], text)"},
			{"pcall, in the quick part", "redis.pcall('PUBLISH', channel, text)", "call('PUBLISH', channel, text)"},
		},
	},
	{
		name:  "10 a script reads the clock once",
		check: checkOneClock,
		mutants: []mutant{
			{
				"the one reading", "local ms = math.floor(tonumber(now) / 1000)\n\n",
				"local ms = call('TIME')[1] * 1000\n\n",
			},
		},
	},
	{
		name:  "11 without memory nobody loses a lock",
		check: checkWithoutMemory,
		mutants: []mutant{
			{"the first write of a renewal", "\tcall('PEXPIRE', key, lasts)", ""},
			{
				"the first write of a renewal beside waiters",
				"\tcall('PEXPIRE', key, math.max(lease, call('PTTL', key)))\n", "",
			},
			{
				"the first write of a heartbeat, in the quick part",
				"call('PEXPIRE', KEYS[1], math.max(450000, call('PTTL', KEYS[1])))", "",
			},
			{"the free way to the general part", "redis.pcall('SET', KEYS[1], '1 '", "call('SET', KEYS[1], '1 '"},
			{
				"the first write of a release",
				"\t\telseif form == 'hash' then\n\t\t\tcall('PEXPIREAT', KEYS[1], ends)\n", "",
			},
		},
	},
}

// checkWithoutMemory checks a lock with one holder, and one with waiters, while the server refuses to write.
func checkWithoutMemory(s *stage) {
	g := s.acquire(ask{id: "a", lease: time.Second})
	s.full(func() {
		// which shows a new owner
		s.want("renewal of a thin lock", s.renewAs(ask{id: "a"}, time.Minute, 0, unmarked), "k")
		s.want("a copy", s.acquire(ask{id: "a"}).token, g.token)
		s.want("release", s.release("a"), "ok")
	})
	s.acquire(ask{id: "b", lease: time.Second})
	s.acquire(ask{id: "c", claim: time.Minute})
	s.acquire(ask{id: "d"})
	s.full(func() {
		s.want("renewal of a lock with waiters", s.renew("b", time.Minute), "w")
		s.want("heartbeat", s.acquire(ask{id: "c", claim: time.Minute}).verdict, queued)
		s.want("release to a waiter", s.release("b"), "ok")
		s.want("pushed", s.pushes(), "G c")
		s.want("the lock", s.show(), "c < d")
	})
	s.want("the lock", s.show(), "c < d")
	s.full(func() {
		s.want("a break", s.breakLock(s.current()), "ok")
	})
	s.want("the lock", s.show(), "d <")
}

// current is a token of a holder.
func (s *stage) current() uint64 {
	info, _ := s.look()
	if len(info.Holders) == 0 {
		return 0
	}
	return info.Holders[0].Token
}

// checkOneClock counts how often the server's clock is read.
func checkOneClock(s *stage) {
	once := func(what string, f func()) {
		s.do("CONFIG", "RESETSTAT")
		f()
		stats := s.text("INFO", "commandstats")
		s.must(!strings.Contains(stats, "cmdstat_time:calls=2"), "%s reads it twice", what)
	}
	once("an acquire", func() { s.acquire(ask{id: "a"}) })
	s.acquire(ask{id: "b"}) // of a thin lock, whose end is told by the time that its key lasts
	once("queueing behind another", func() { s.acquire(ask{id: "c"}) })
	once("a renewal", func() { s.renew("a", time.Minute) })
	once("a release", func() { s.release("a") })
	once("a release that finds nothing", func() { s.release("nobody") })
	once("a requeue", func() { s.requeue("b", ask{id: "e"}) })
	once("a named owner's queueing", func() { s.acquire(ask{id: "d", mode: "x", owner: "A"}) })
	once("a look", func() { s.show() })
	once("a break", func() { s.breakLock(1) })
}
