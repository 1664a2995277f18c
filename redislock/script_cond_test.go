package redislock

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// States of conditions that are hard to reach through the driver.
func TestScripts_OfConditions_InStatesThatAreHardToReach(t *testing.T) {
	server := servers.RedisServer(t, nil)
	for _, c := range []struct {
		name  string
		check func(s *stage)
	}{
		{"waits that have ended leave no gaps at the front", checkCondGaps},
		{"a condition of a later format is refused and left alone", checkCondNewer},
		{"without memory a signal arrives", checkSignalWithoutMemory},
		{"a signal outlives a lease and who died with it", checkSignalOutlivesHold},
		{"a signal whose receiver hears nothing goes on to who waits for the next", checkSignalUnheard},
		{"a request that is over takes no signal along", checkSignalBesideATombstone},
		{"who is woken by its own heartbeat waits once", checkWokenByItsHeartbeat},
		{"a signal for everybody wakes 200 in a run, and nobody who came later", checkSignalInParts},
		{"a signal that comes in the instant of an undo goes on", checkWokenByItsUndo},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachWay(t, server, func(s *stage) {
				s.name = "mutex:x"
				c.check(s)
			})
		})
	}
}

func (s *stage) condition() string { return s.prefix + "cond:{a}:x" }

// waits waits for a signal, and gives up a hold for that, unless it already does. It returns the
// first word of the answer.
func (s *stage) waits(give string, a ask, again bool) string {
	args := append(s.args(a), give, "", "10000", map[bool]string{false: "0", true: "1"}[again])
	word, _, _ := strings.Cut(s.run(condWaitScript, append(s.keys(a.id), s.tomb(give)), args...), " ")
	return word
}

// parks takes the free lock and gives it up for a wait.
func (s *stage) parks(a ask) {
	give := "before-" + a.id
	s.acquire(ask{id: give})
	s.want(a.id+" waits", s.waits(give, a, false), "C")
}

func (s *stage) signal(id string) string {
	return s.run(condSignalScript, s.keys(id), id, "0", "10000")
}

// signalAll is a part of a signal for everybody; more is what the part before it has answered, or empty.
func (s *stage) signalAll(id, more string) string {
	args := []string{id, "1", "10000"}
	if more != "" {
		args = append(args, strings.TrimPrefix(more, "more "))
	}
	return s.run(condSignalScript, s.keys(id), args...)
}

func checkSignalInParts(s *stage) {
	const crowd = 220 // all must have been heard of within two seconds, also beside load
	for i := range crowd {
		s.parks(ask{id: strconv.Itoa(i)})
	}
	parked := func() int64 { return (s.number("HLEN", s.condition()) - 3) / 2 }
	more := s.signalAll("s", "")
	s.want("the first part", more, "more "+strconv.Itoa(crowd))
	s.want("who waits after it", parked(), int64(crowd-200))
	s.want("the first part, repeated", s.signalAll("s", ""), more)
	s.want("who waits after the repetition", parked(), int64(crowd-200))
	// The lock is somebody's by now, so another hold is needed to give up.
	s.want("undone", s.undo("0"), "ok")
	late := s.waits("1", ask{id: "late"}, false)
	s.want("one who comes later waits", late, "C")
	s.want("the last part", s.signalAll("s/1", more), "ok")
	s.want("who waits after all", parked(), int64(1))
	s.want("the last part, repeated", s.signalAll("s/1", more), "ok")
	s.want("who waits after that", parked(), int64(1))
	s.want("another signal", s.signal("t"), "ok")
	s.want("the condition", s.text("TYPE", s.condition()), "none")
}

func checkCondGaps(s *stage) {
	for i := range 5 {
		s.parks(ask{id: strconv.Itoa(i)})
	}
	from := func() string { return s.text("HGET", s.condition(), "a") }
	s.undo("1")
	s.undo("2")
	s.want("with a gap behind the first it begins at", from(), "0")
	s.undo("0")
	s.want("without the first it begins at", from(), "3")
	s.want("who is left", s.number("HLEN", s.condition()), int64(3+2*2))
	s.want("a signal", s.signal("s"), "ok")
	s.want("who is woken", s.show(), "3 <")
	s.want("after the signal it begins at", from(), "4")
	s.undo("4")
	s.want("without anybody there is", s.text("TYPE", s.condition()), "none")
}

func checkCondNewer(s *stage) {
	s.parks(ask{id: "a"})
	s.do("HSET", s.condition(), "v", "2")
	s.acquire(ask{id: "h"})
	before := s.text("HMGET", s.condition(), "v", "a", "z", "q:0", "w:a")
	s.want("a signal", s.signal("s"), "newer 2")
	s.want("a wait", s.waits("h", ask{id: "b"}, false), "newer")
	s.want("a heartbeat", s.waits("before-a", ask{id: "a"}, true), "newer")
	s.want("an undo", s.undo("a"), "ok")
	s.want("the lock", s.show(), "h <")
	s.want("the condition", s.text("HMGET", s.condition(), "v", "a", "z", "q:0", "w:a"), before)
	s.want("tombstones of signals", s.number("EXISTS", s.tomb("s")), int64(0))
}

func checkSignalWithoutMemory(s *stage) {
	s.full(func() { s.want("a signal that nobody waits for", s.signal("s"), "ok") })
	s.parks(ask{id: "a"})
	s.full(func() { s.want("a copy of it", s.signal("s"), "ok") })
	s.want("the lock", s.show(), "<")
	s.full(func() { s.want("a signal", s.signal("t"), "ok") })
	s.want("who is woken", s.show(), "a <")
	s.want("pushed", s.pushes(), "G a")
}

// checkSignalOutlivesHold moves a waiter behind a hold: both may have died. Whoever waits for the next signal has to
// find it when the lease is over, so the lock must be there then.
func checkSignalOutlivesHold(s *stage) {
	s.parks(ask{id: "a"})
	s.acquire(ask{id: "h", lease: time.Minute})
	lasts := func(when string) {
		ms := s.number("PTTL", s.lock())
		s.must(ms > 70_000, "%s the lock is there for %d ms, and the hold for 60000", when, ms)
	}
	s.want("a signal", s.signal("s"), "ok")
	s.want("the lock", s.show(), "h < a")
	lasts("after a signal")
	s.acquire(ask{id: "h", lease: time.Minute})
	lasts("asked again")
	s.want("renewal", s.renew("h", time.Minute), "w")
	lasts("renewed")
	s.do("PEXPIRE", s.lock(), "1000")
	s.want("renewal", s.renew("h", time.Minute), "w")
	lasts("renewed by itself")
}

// checkSignalUnheard signals somebody whose connection is closed: the push reaches nobody, so that the lock stays free
// and he its first waiter. When he is dead, nobody is left but who waits for the next signal.
func checkSignalUnheard(s *stage) {
	dies := ask{id: "a", channel: deaf, place: blink, claim: blink / 2}
	s.parks(dies)
	s.parks(ask{id: "b"})
	s.want("a signal", s.signal("s"), "ok")
	s.want("a heartbeat", s.waits("before-b", ask{id: "b"}, true), "C")
	s.pass(blink)
	s.want("a heartbeat when the first is dead", s.waits("before-b", ask{id: "b"}, true), "C")
	s.want("pushed", s.pushes(), "G b")
	s.want("the lock", s.show(), "b <")
}

// checkSignalBesideATombstone has a script find that a signal must go on, and then refuse its request.
func checkSignalBesideATombstone(s *stage) {
	for _, refused := range []struct {
		what, says string
		runs       func() string
	}{
		{"a wait", "gone", func() string { return s.waits("h", ask{id: "gone"}, false) }},
		{"a requeue", fmt.Sprint(over), func() string { return fmt.Sprint(s.requeue("h", ask{id: "gone"}).verdict) }},
	} {
		s.parks(ask{id: "a", place: blink, claim: blink})
		s.parks(ask{id: "b"})
		s.undo("gone")
		s.signal("s-" + refused.says)
		s.want("the lock", s.show(), "a <")
		s.pass(blink)
		s.want(refused.what+" of what is over", refused.runs(), refused.says)
		s.want("after "+refused.what+", the lock", s.show(), "< b")
		s.acquire(ask{id: "b"})
		s.release("b")
	}
}

// diesSignalled has the first of those who wait die with its signal, which nobody has seen yet: it will go on to b.
func (s *stage) diesSignalled() {
	s.parks(ask{id: "a", place: 2 * blink, claim: blink})
	s.parks(ask{id: "b"})
	s.parks(ask{id: "c"})
	s.want("a signal", s.signal("s"), "ok")
	s.acquire(ask{id: "w"})
	s.want("the lock", s.show(), "a < w")
	s.pass(2 * blink)
}

func checkWokenByItsHeartbeat(s *stage) {
	s.diesSignalled()
	s.want("the heartbeat of who is signalled by it", s.waits("before-b", ask{id: "b"}, true), "Q")
	s.want("the lock", s.show(), "w < b")
}

func checkWokenByItsUndo(s *stage) {
	s.diesSignalled()
	s.want("the undo of who is signalled by it", s.undo("b"), "ok")
	s.want("the lock", s.show(), "w < c")
}
