package redislock

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// The rules of the protocol that the scripts carry: section 1, and rules 4 to 12 of section 2.
func TestRules_OfTheScripts_AreKeptAndNecessary(t *testing.T) {
	t.Parallel()
	server := servers.RedisServer(t, nil)
	for i := range writingRules {
		writingRules[i].alone = true
	}
	t.Run("identities", func(t *testing.T) { testRules(t, server, identityRules) })
	t.Run("waiting", func(t *testing.T) { testRules(t, server, waitingRules) })
	t.Run("deaths", func(t *testing.T) { testRules(t, server, deathRules) })
	t.Run("tokens", func(t *testing.T) { testRules(t, server, tokenRules) })
	t.Run("writing", func(t *testing.T) { testRules(t, server, writingRules) })
	t.Run("publishing", func(t *testing.T) { testRules(t, server, publishRules) })
	t.Run("queue", func(t *testing.T) { testRules(t, server, queueRules) })
	t.Run("retention", func(t *testing.T) { testRules(t, server, retentionRules) })
	t.Run("conversion", func(t *testing.T) { testRules(t, server, convertRules) })
}

// blink is a claim that a test waits for.
const blink = 100 * time.Millisecond

var waitingRules = []rule{
	{
		name: "4 a heartbeat ends what is over and grants",
		check: func(s *stage) {
			s.acquire(ask{id: "a", lease: blink})
			s.want("b", s.acquire(ask{id: "b"}).verdict, queued)
			s.pass(blink)
			s.want("b after a's death", s.acquire(ask{id: "b"}).verdict, granted)
		},
		mutants: []mutant{{
			"the grant: a heartbeat that only refreshes", "\tput(place, queued)\n",
			"\tput(place, queued)\n\tdo\n\t\tsave()\n\t\treturn 'Q ' .. now .. ' 1 0 0 0 0 {}'\n\tend\n",
		}},
	},
	{
		name: "4 a heartbeat keeps the place",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b", place: 4 * blink}))
			s.acquire(as(ask{id: "c"}))
			s.pass(5 * blink / 2)
			s.want("place", s.acquire(as(ask{id: "b", place: 4 * blink})).queuePlace, 1)
			s.pass(5 * blink / 2)
			s.release("a")
			s.want("pushed", s.pushes(), "G b")
		}),
		mutants: []mutant{
			{
				"the refresh",
				"queued[ALIVE], queued[CHANNEL], queued[WAY], queued[CLAIM], queued[TTL] = me[ALIVE], me[CHANNEL], " +
					"me[WAY], me[CLAIM], ttl", "queued[WAY] = me[WAY]",
			},
			{
				"the refresh, in the quick part", "call('HSET', KEYS[1], 'q:' .. number,",
				"call('HSET', KEYS[1], (f[4] and 'x:' or 'q:') .. number,",
			},
		},
	},
	{
		name: "4 a copy of the request answers that it is granted, and claims",
		check: func(s *stage) {
			s.acquire(ask{id: "a"})
			s.acquire(ask{id: "b", claim: blink, place: blink})
			s.release("a")
			s.want("the claim", s.acquire(ask{id: "b"}).verdict, granted)
			s.pass(blink * 3 / 2)
			s.want("c beside it", s.acquire(ask{id: "c", way: "t"}).verdict, held)
		},
		mutants: []mutant{
			{"the claim", "hold[UNTIL], hold[STATE] = math.max(hold[UNTIL], ms + lease), HELD", "hold[STATE] = HELD"},
		},
	},
	{
		name: "4 every reply says when something may happen by itself",
		check: func(s *stage) {
			s.acquire(ask{id: "a", mode: "s", lease: time.Minute})
			s.acquire(ask{id: "b", mode: "s", lease: time.Second})
			s.acquire(ask{id: "c"})
			next := s.acquire(ask{id: "d"}).next
			s.must(next > 900*time.Millisecond && next <= time.Second, "the next event is in %v", next)
		},
		mutants: []mutant{{"the next event", "(ends and math.max(ends - ms, 1) or 0)", "0"}},
	},
	{
		name: "5 a pushed grant is short until it is claimed",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "dead", claim: 4 * blink, place: 4 * blink})) // which a busy machine does not outlast
			s.acquire(as(ask{id: "c"}))
			s.release("a")
			s.want("pushed", s.pushes(), "G dead")
			s.pass(4 * blink)
			s.want("c", s.acquire(as(ask{id: "c"})).verdict, granted)
		}),
		mutants: []mutant{
			{"the short life", "grant(w, CLAIMED, w[CLAIM])", "grant(w, CLAIMED, w[LEASE])"},
			{"the short life, in the quick part", "'P1 ' .. ms + claim .. ' 1 '", "'P1 ' .. ms + 60000 .. ' 1 '"},
		},
	},
	{
		name: "5 who is next and asks rarely hears of a push to another, to see whether it is claimed",
		check: func(s *stage) {
			s.acquire(ask{id: "a"})
			s.acquire(ask{id: "b"})
			s.acquire(ask{id: "c", way: "P", claim: blink, place: time.Minute})
			s.speaks(time.Minute)
			s.pass(2 * blink)
			s.acquire(ask{id: "b"})
			s.release("a")
			s.want("pushed", s.pushes(), "G b, A c")
		},
		mutants: []mutant{
			{"the notice", "\t\t\t\t\tnudge(n, w) -- it asks when", "\t\t\t\t\t-- it asks when"},
			{"the way to it from the quick part", "alive - lasts + asks <= tonumber(ms)", "false"},
		},
	},
	{
		name:  "5 an unclaimed grant goes back to the head, twice, then to the tail",
		check: checkPatience,
		mutants: []mutant{
			{"the head", "h[MISSED] <= PATIENCE and first - 1 or after", "after"},
			{"the limit of two", "h[MISSED] <= PATIENCE and first - 1 or after", "first - 1"},
			{"the way back", "h[STATE] == CLAIMED and not dead(h)", "false"},
		},
	},
	{
		name: "5 the dead are granted nothing",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "dead", place: blink}))
			s.acquire(as(ask{id: "c"}))
			s.pass(blink)
			s.release("a")
			s.want("pushed", s.pushes(), "G c")
			s.want("the lock", s.show(), "c <")
		}),
		mutants: []mutant{
			{"the heartbeat's end", "return w[ALIVE] <= ms or", "return w[ALIVE] <= 0 or"},
			{"the heartbeat's end, in the quick part", "'P1 ' and string.sub(w, 4, 16) > ms", "'P1 '"},
		},
	},
	{
		name: "5 who hears no push is skipped, and keeps the place",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b", channel: deaf}))
			s.acquire(as(ask{id: "c"}))
			s.acquire(as(ask{id: "d"}))
			s.release("a")
			s.want("pushed", s.pushes(), "G c")
			s.want("the lock", s.show(), "c < b d")
			s.want("b's place", s.acquire(as(ask{id: "b"})).queuePlace, 1)
		}),
		mutants: []mutant{
			{"the skipping", "w[CHANNEL], text) == 0 then", "w[CHANNEL], text) == -1 then"},
			{"the skipping, in the quick part", "if heard ~= 0 then", "if true then"},
			{"the place", "\t\t\tback(n, w)\n", ""},
			{"the place, but the tail", "\t\t\tback(n, w)\n", "\t\t\tback(after, w)\n"},
			{"the place, in the quick part", "'h', h, 'a', f[2], place, w, 'w:' .. id, f[2])", "'h', h)"},
		},
	},
	{
		name: "5 who was not heard of for the time of a claim is passed over, and keeps the place",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b", claim: blink}))
			s.acquire(as(ask{id: "c"}))
			s.pass(blink)
			s.release("a")
			s.want("pushed", s.pushes(), "G c")
			s.want("the lock", s.show(), "c < b")
			s.want("b's place", s.acquire(as(ask{id: "b"})).queuePlace, 1)
		}),
		mutants: []mutant{
			{"it", "return w[ALIVE] - w[TTL] + w[CLAIM] > ms", "return true"},
			{"it, in the quick part", "string.sub(w, 4, 16) - ttl + claim > tonumber(ms)", "true"},
		},
	},
	{
		name: "5 who is silent is heard of while its process speaks for it",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b", way: "P", claim: blink, place: time.Minute}))
			s.acquire(as(ask{id: "c"}))
			s.speaks(time.Minute)
			s.pass(3 * blink)
			s.release("a")
			s.want("pushed", s.pushes(), "G b")
			s.want("the lock", s.show(), "b < c")
		}),
		mutants: []mutant{
			{"it", "+ w[CLAIM] > ms or spokenFor(w, 0)", "+ w[CLAIM] > ms"},
			{"it, at the end of a place", "<= ms and not spokenFor(w, PLACE)", "<= ms"},
		},
	},
	{
		name: "5 a process that is silent itself speaks for nobody",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b", way: "P", claim: 4 * blink, place: time.Minute}))
			s.acquire(as(ask{id: "c", claim: time.Minute, place: time.Minute}))
			s.run(aliveScript, []string{s.prefix + "alive"}, "another", "60000") // so the key stays
			s.speaks(4 * blink)
			s.pass(4 * blink)
			s.release("a")
			s.want("pushed", s.pushes(), "G c")
			s.want("the lock", s.show(), "c < b")
			ago := time.Now().Add(-4 * time.Second).UnixMilli() // a place lasts for 3 s more
			s.do("ZADD", s.prefix+"alive", strconv.FormatInt(ago, 10), "heard")
			s.pass(6 * blink)
			s.want("the lock after two and a half claims", s.show(), "c <")
			s.release("c")
			s.want("what is left", s.text("EXISTS", s.lock()), "0")
		}),
		mutants: []mutant{
			{"its end", "return speaks[process] + grace > ms", "return speaks[process] > 0"},
			{"its end, in the quick part", "process) or 0) > tonumber(ms)", "process) or 0) > 0"},
			{"the end of a place", "<= ms and not spokenFor(w, PLACE)", "<= 0"},
		},
	},
	{
		name: "5 who comes while nobody is heard of does not stand behind them",
		check: func(s *stage) {
			for _, way := range []string{"t", "p"} {
				s.acquire(ask{id: "a", lease: blink})
				s.acquire(ask{id: "b", claim: blink})
				s.pass(blink)
				s.want("who comes", s.acquire(ask{id: "c", way: way}).verdict, granted)
				s.want("the lock", s.show(), "c < b")
				s.do("DEL", s.lock())
			}
		},
		mutants: []mutant{{"it", "(verdict == 'upgrades' or deserted())", "(verdict == 'upgrades' or first >= after)"}},
	},
	{
		name: "5 the push tells of the short life",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.acquire(as(ask{id: "a"}))
			s.acquire(as(ask{id: "b", claim: 1500 * time.Millisecond}))
			s.release("a")
			s.want("the lease of the push", s.push().lease, 1500*time.Millisecond)
		}),
		mutants: []mutant{
			{"the short life in it", "w[NONCE] .. ' ' .. w[CLAIM]", "w[NONCE] .. ' ' .. w[LEASE]"},
			{"the short life in it, in the quick part", "id .. ' ' .. claim\n", "id .. ' 60000'\n"},
		},
	},
}

// checkPatience lets a pushed grant pass as often as it comes. Who does that is passed over until it is heard of again.
func checkPatience(s *stage) {
	b := ask{id: "b", claim: 4 * blink} // which a busy machine does not outlast
	s.acquire(ask{id: "a"})
	s.acquire(b)
	s.acquire(ask{id: "silent", claim: blink})
	s.release("a")
	for i, place := range []int{1, 1, 2} {
		next := fmt.Sprint("c", i)
		s.want("pushed", s.pushes(), "G b")
		s.pass(4 * blink)
		s.want(next, s.acquire(ask{id: next}).verdict, granted)
		s.want("b's place", s.acquire(b).queuePlace, place)
		s.release(next)
	}
}

var tokenRules = []rule{
	{
		name: "7 a block is given only ahead of the clock",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.ahead(time.Hour)
			s.want("tokens with a floor ahead", s.acquire(as(ask{id: "a", tokens: 8})).tokens, 1)
			s.acquire(as(ask{id: "b", tokens: 8}))
			s.release("a")
			s.want("tokens of a push with a floor ahead", s.push().tokens, 1)
		}),
		mutants: []mutant{
			{"the one, in the quick part", "if known[2] and known[2] >= now then -- as mint", "if false then --"},
			{"the one, in the general part", "\t\treturn floor, 1\n", "\t\treturn floor, n\n"},
			{"the one, in the quick part of a release", "known[2] + 1), '1'\n", "known[2] + 1), want\n"},
		},
	},
	{
		name: "7 the floor is the end of the block",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			s.pass(70 * time.Millisecond) // until the clock is ahead of the part before
			g := s.acquire(as(ask{id: "a", tokens: 60000}))
			s.want("tokens", g.tokens, 60000)
			s.release("a")
			next := s.acquire(as(ask{id: "b"}))
			s.must(next.token >= g.token+60000, "token %d after a block from %d", next.token, g.token)
			s.acquire(as(ask{id: "c", tokens: 60000}))
			s.pass(70 * time.Millisecond)
			s.release("b")
			g = s.push()
			s.release("c")
			next = s.acquire(as(ask{id: "d"}))
			s.must(next.token >= g.token+60000, "token %d after a push of a block from %d", next.token, g.token)
		}),
		mutants: []mutant{
			{
				"the end, in the quick part", "tokens == '1' and token or string.format('%.0f', token + tokens - 1)",
				"now",
			},
			{
				"the end, in the general part", "floor = n == 1 and now or string.format('%.0f', now + n - 1)",
				"floor = now",
			},
			{"the end, in the quick part of a release", "last = string.format('%.0f', now + want - 1)", "last = now"},
		},
	},
	{
		name: "7 and 8 tokens never go back, though the lock is gone and the clock is behind",
		check: func(s *stage) {
			last := s.ahead(time.Hour)
			for i, mode := range []string{"X", "X", "x", "s", "X"} {
				id := fmt.Sprint(i)
				g := s.acquire(ask{id: id, mode: mode, owner: ownerIf(mode), tokens: 3})
				s.want("the token after the floor", g.token, last+1)
				last = g.token
				if i == 1 {
					s.do("DEL", s.lock())
				} else {
					s.release(id)
				}
			}
		},
		mutants: []mutant{
			{"the floor", "\t\tcall('SET', KEYS[2], floor)\n", ""},
			{"the step", "string.format('%.0f', floor + 1)", "string.format('%.0f', floor)"},
		},
	},
	{
		name: "8 nothing is left of a name but the floor of its slot",
		check: func(s *stage) {
			for i := range 20 {
				name := fmt.Sprint("name", i)
				key := s.prefix + name
				s.run(s.book.acquire, []string{key, s.floor(), s.tomb(name)}, s.args(ask{id: name})...)
				s.run(s.book.acquire, []string{key, s.floor(), s.tomb(name + "w")},
					s.args(ask{id: name + "w", channel: deaf})...)
				s.run(s.book.release, []string{key, s.floor(), s.tomb(name)}, name, "", "10000", "0")
				s.run(s.book.release, []string{key, s.floor(), s.tomb(name + "w")}, name+"w", "u", "10000", "0")
			}
			for _, key := range s.all() {
				s.must(key == s.floor() || strings.HasPrefix(key, s.tomb("")), "left: %s", key)
			}
		},
		mutants: []mutant{
			{"the end of the key", "\t\tif form ~= 'none' then\n\t\t\tcall('DEL', KEYS[1])\n\t\tend\n", ""},
		},
	},
}

func ownerIf(mode string) string {
	if mode == "X" {
		return ""
	}
	return "A"
}

// ahead sets the floor as if the clock had been put back by d.
func (s *stage) ahead(d time.Duration) uint64 {
	now := uint64(time.Now().Add(d).UnixMicro())
	s.do("SET", s.floor(), fmt.Sprint(now))
	return now
}

// all returns the keys of the stage.
func (s *stage) all() []string {
	found, _ := s.do("KEYS", s.prefix+"*").([]any)
	keys := make([]string, len(found))
	for i := range found {
		keys[i] = fmt.Sprint(found[i])
	}
	return keys
}
