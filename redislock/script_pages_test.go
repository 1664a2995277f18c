package redislock

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What one run of a script does is bounded, however many hold or wait: the rest is another run's.

// page is how many holds and waiters one run of look tells of, PAGE of look.lua.
const page = 200

// checkPagedLook has many readers in and many waiters behind them, some of whom have gone or are renewed meanwhile.
func checkPagedLook(s *stage) {
	const readers, writers = 3*page + 7, 2*page + 3
	for i := range readers {
		s.acquire(ask{id: fmt.Sprint("r", i), mode: "s"})
	}
	for i := range writers {
		s.acquire(ask{id: fmt.Sprint("w", i), mode: "x", place: 10 * time.Minute, claim: 10 * time.Minute})
	}
	s.undo("w3")
	s.undo("w250")
	var p pages
	runs := 0
	for more := true; more && s.err == nil; more = p.next != nil {
		before := len(p.holds) + len(p.waiters)
		p.add(s.run(s.book.look, []string{s.lock()}, p.next...))
		s.must(len(p.holds)+len(p.waiters)-before <= page, "one run tells of %d", len(p.holds)+len(p.waiters)-before)
		if runs++; runs == 1 { // they go to the end of the order in which they are read
			for i := range page {
				s.renew(fmt.Sprint("r", i), time.Hour)
			}
		}
	}
	info := seen(driver.Key{Kind: driver.KindRWMutex, Name: "stage"}, &p).info
	s.want("readers", len(info.Holders), readers)
	s.want("waiters", len(info.Waiters), writers-2)
	for i, h := range info.Holders {
		s.want("a reader", h.Label, fmt.Sprint("r", i))
	}
	s.must(len(info.Waiters) > 3 && info.Waiters[3].Label == "w4" && info.Waiters[3].Position == 4, "waiters %+v",
		info.Waiters[:min(4, len(info.Waiters))])
	s.must(runs <= 7, "it took %d runs", runs)
}

// resizes asks for the limit until there is an answer, and calls between before each run but the first.
func (s *stage) resizes(limit int, between func(run int)) (answer string, runs int) {
	args := []string{fmt.Sprint(limit)}
	for runs = 1; ; runs++ {
		answer = s.run(resizeScript, s.keys(""), args...)
		words := strings.Fields(answer)
		if s.err != nil || words[0] != "more" {
			return answer, runs
		}
		if between != nil {
			between(runs)
		}
		args = append(args[:1:1], words[1:]...)
	}
}

// checkPagedResize makes a semaphore smaller for which many wait, of whom some come and go between the runs.
func checkPagedResize(s *stage) {
	const many = 1100
	wants := func(id string, weight int) ask {
		return ask{id: id, mode: "s", weight: weight, limit: 5, place: 10 * time.Minute, claim: 10 * time.Minute}
	}
	s.acquire(wants("holder", 5))
	for i := range many {
		s.acquire(wants(fmt.Sprint("w", i), 1))
	}
	answer, runs := s.resizes(4, func(int) { s.undo("w7") })
	s.want("a smaller limit", answer, "ok")
	s.want("runs", runs, 3)
	answer, runs = s.resizes(6, nil) // a larger one looks at nobody
	s.want("a larger limit", fmt.Sprint(answer, runs), "ok1")
	answer, _ = s.resizes(3, func(run int) {
		if run == 1 {
			s.acquire(ask{id: "late", mode: "s", weight: 5, limit: 6, place: time.Minute})
		}
	})
	s.want("a limit below what somebody wants who came meanwhile", answer, "conflict 5")
	s.undo("late")
	answer, _ = s.resizes(2, nil)
	s.want("and without that one", answer, "ok")
}

// breaks asks for a break until there is an answer.
func (s *stage) breaks(token uint64) (answer string, runs int) {
	args := []string{fmt.Sprint(token)}
	for runs = 1; ; runs++ {
		answer = s.run(s.book.breaking, s.keys(""), args...)
		words := strings.Fields(answer)
		if s.err != nil || words[0] != "more" {
			return words[0], runs
		}
		args = append(args[:1:1], words[1:]...)
	}
}

// checkPagedBreak breaks one of many readers, and a named owner whose reads are far apart among them.
func checkPagedBreak(s *stage) {
	const many = 3 * page
	read := func(id, owner string) reply { return s.acquire(ask{id: id, mode: "s", owner: owner}) }
	tokens := map[string]uint64{}
	for i := range many {
		if i == 10 || i == many-10 {
			tokens["A"] = read(fmt.Sprint("named", i), "A").token
		}
		id := fmt.Sprint("r", i)
		tokens[id] = read(id, "").token
	}
	s.pushes()
	for _, id := range []string{"r5", fmt.Sprint("r", many/2), fmt.Sprint("r", many-1)} {
		answer, runs := s.breaks(tokens[id])
		s.want("the break of "+id, answer, "ok")
		s.want("told", s.pushes(), "B "+id)
		s.must(runs <= many/page+1, "%d runs", runs)
	}
	answer, _ := s.breaks(tokens["r5"])
	s.want("once more", answer, "H")
	answer, runs := s.breaks(tokens["A"])
	s.want("the break of an owner with two", answer, "ok")
	s.want("told", s.pushes(), fmt.Sprintf("B named10, B named%d", many-10))
	s.must(runs <= 2*(many/page+1), "%d runs", runs)
	info, _ := s.look()
	s.want("readers that are left", len(info.Holders), many-3)
	s.want("their tombstones", s.text("GET", s.tomb("named10")), "broken")
}
