package redislock

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

var publishRules = []rule{
	{
		name: "10 a script publishes when it has written everything",
		check: inBothParts(func(s *stage, as func(a ask) ask) {
			for _, row := range []struct {
				what  string
				lease time.Duration
				push  func(holder reply)
			}{
				{"a release", time.Minute, func(reply) { s.release("a") }},
				{"a release and request in one", time.Minute, func(reply) { s.requeue("a", as(ask{id: "c"})) }},
				{"a break", time.Minute, func(holder reply) { s.breakLock(holder.token) }},
				{"a request after a death", blink, func(reply) { s.acquire(as(ask{id: "c"})) }},
			} {
				s.do("DEL", s.lock(), s.tomb("a"))
				holder := s.acquire(as(ask{id: "a", lease: row.lease}))
				s.want("who waits", s.acquire(as(ask{id: "b"})).verdict, queued)
				if row.lease == blink {
					s.pass(blink)
				}
				s.publishedLast(row.what, func() { row.push(holder) })
			}
		}),
		mutants: []mutant{
			{
				"it", "\tsave()\n\twhile deliver(skip) do\n\t\tdrain(skip)\n\t\tsave()\n\tend\n",
				"\twhile deliver(skip) do\n\t\tdrain(skip)\n\tend\n\tsave()\n",
			},
			{
				"it, in the quick part", "\t\t\tif heard ~= 0 then\n",
				"\t\t\tcall('SET', KEYS[2], last)\n\t\t\tif heard ~= 0 then\n",
			},
		},
	},
}

// publishedLast notes an error unless f has the server publish something, and write nothing to the lock
// or the floor after that.
func (s *stage) publishedLast(what string, f func()) {
	published := 0
	for _, command := range s.effects(f) {
		if strings.HasSuffix(command, "PUBLISH") {
			published++
			continue
		}
		s.must(published == 0, "%s: there is %s behind what was published", what, command)
	}
	s.must(published > 0, "%s publishes nothing", what)
}

// reads are the commands of the scripts that change nothing.
var reads = []string{"GET", "MGET", "HGET", "HMGET", "PTTL", "TIME"}

// effects returns the commands of the scripts that f has the server run which change the lock or the
// floor, and those that publish.
func (s *stage) effects(f func()) (commands []string) {
	if s.err != nil {
		return nil
	}
	m, err := s.server.Dial(s.ctx)
	if err != nil {
		s.err = err
		return nil
	}
	defer m.Close()
	if _, s.err = m.Do(s.ctx, "MONITOR"); s.err != nil {
		return nil
	}
	f()
	end := "end of what is seen by " + s.prefix
	s.do("ECHO", end)
	for s.err == nil {
		seen, err := m.Receive(s.ctx)
		if err != nil {
			s.err = err
			return nil
		}
		// For instance: 1700000000.000001 [0 lua] "SET" "stage1:floor:{a}" "1700000000000001"
		line := fmt.Sprint(seen)
		if strings.Contains(line, end) {
			return commands
		}
		_, command, inScript := strings.Cut(line, " lua] ")
		// the command is the second of them, its first argument the fourth
		words := append(strings.Split(command, `"`), "", "", "")
		switch {
		case !inScript, slices.Contains(reads, words[1]):
		case strings.HasSuffix(words[1], "PUBLISH"), words[3] == s.lock(), words[3] == s.floor():
			commands = append(commands, words[1])
		}
	}
	return nil
}
