package interlock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// The steps of histories_sharing_test.go that take away holds, and the comparison of what can be seen with the model
// (kit_sharing_model_test.go).

// breakOne breaks a random hold. Of a read/write lock its owner loses all holds, of a semaphore only this one.
func (s *sharing) breakOne(i int) {
	h := s.pick(i, func(*modelHold) bool { return true })
	if h == nil {
		return
	}
	s.note("lock %d of %d is broken", i, h.who)
	kind := KindRWMutex
	broken := func(o *modelHold) bool { return o.who == h.who }
	if s.locks[i].limit > 0 {
		kind, broken = KindSemaphore, func(o *modelHold) bool { return o == h }
	}
	var lost []*modelHold
	for _, o := range s.locks[i].holds {
		if broken(o) {
			lost = append(lost, o)
		}
	}
	s.locks[i].end(broken)
	if err := s.c[0].Break(s.t.Context(), kind, s.leases[h].Name(), s.leases[h].Token()); err != nil {
		s.fail("Break: %v", err)
	}
	synctest.Wait()
	for _, o := range lost {
		if err := s.leases[o].Unlock(s.t.Context()); !errors.Is(err, ErrLost) {
			s.fail("Unlock after a break: %v", err)
		}
	}
}

// crash makes a client vanish: it sends nothing any more, and its leases run out. A new client takes its place.
func (s *sharing) crash() {
	at := len(s.c) - 1
	s.note("client %d crashes", at)
	h := s.hooks[at]
	gone := func(o *modelHold) bool { return s.actors[o.who].name == "" && s.actors[o.who].c == 2 }
	on(h, &h.renew, noRenewals)
	on(h, &h.release, func(context.Context, *driver.Release) error {
		return &UnavailableError{Err: errors.New("crashed")}
	})
	_ = h.Driver.Close()
	_ = s.c[at].Close()
	for _, p := range s.calls {
		if gone(p.h) {
			p.want = "closed"
		}
	}
	time.Sleep(2 * defaultLease)
	for _, m := range s.locks {
		m.end(gone)
	}
	s.c, s.hooks = s.c[:at], s.hooks[:at]
	s.open()
	for i, a := range s.actors {
		if a.name == "" && a.c == 2 { // another life, another owner
			a.ctx = context.WithValue(
				s.t.Context(),
				core.OwnerKey{},
				&core.Owner{ID: a.ctx.Value(core.OwnerKey{}).(*core.Owner).ID + "'"},
			)
			s.actors[i] = a
		}
	}
}

// answers collects the outcomes of the calls under way, and compares them with the model.
func (s *sharing) answers() {
	s.t.Helper()
	newest := slices.Clone(s.newest)
	s.calls = slices.DeleteFunc(s.calls, func(p *pending) bool {
		if p.want == isWaiting && !s.locks[p.lock].waits(p.h) {
			p.want = isGranted
		}
		got, l := isWaiting, (*Lease)(nil)
		select {
		case out := <-p.out:
			got, l = outcomeOf(out.err), out.lease
			p.cancel()
		default:
		}
		if got != p.want {
			s.fail("%d, who asked lock %d for mode %d: %s, want %s", p.who, p.lock, p.h.mode, got, p.want)
		}
		if got == isWaiting {
			return false
		}
		s.actors[p.who].busy = false
		if got == isGranted {
			s.granted(p, l, newest)
		}
		return true
	})
	s.newest = newest
}

// granted checks that the token of a new hold is above those before, unless the model says that it re-entered.
func (s *sharing) granted(p *pending, l *Lease, newest []uint64) {
	s.t.Helper()
	if token := l.Token(); !p.h.again {
		if token <= s.newest[p.lock] {
			s.fail("%d has token %d of lock %d after %d", p.who, token, p.lock, s.newest[p.lock])
		}
		newest[p.lock] = max(newest[p.lock], token)
	}
	if p.h.of == nil {
		s.leases[p.h] = l
	}
}

func outcomeOf(err error) verdict {
	switch {
	case err == nil:
		return isGranted
	case errors.Is(err, ErrDeadlock):
		return isDeadlock
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, ErrHeld):
		return isHeld
	}
	return verdict(err.Error())
}

// compare compares all holds with the model, by their leases and by Client.List.
func (s *sharing) compare() {
	s.t.Helper()
	for i, m := range s.locks {
		tokens := make(map[int]uint64)
		for _, h := range m.holds {
			l := s.leases[h]
			stamp, ok := l.Stamp()
			if l.Err() != nil || ok != (m.limit == 0) || ok && stamp.Shared != (h.mode != driver.Exclusive) {
				s.fail("%d, lock %d, mode %d: %v, stamp %+v, %v", h.who, i, h.mode, l.Err(), stamp, ok)
			}
			if token, seen := tokens[h.who]; ok && seen && token != stamp.Token && s.actors[h.who].name == "" {
				s.fail("%d has the tokens %d and %d of lock %d", h.who, token, stamp.Token, i)
			}
			if l.Token() < h.token {
				s.fail("%d has token %d of lock %d after %d", h.who, l.Token(), i, h.token)
			}
			tokens[h.who], h.token = stamp.Token, l.Token()
		}
		got, waits := s.listed(i)
		if want := m.entries(); !maps.Equal(got, want) || waits != len(m.queue) {
			s.fail("lock %d: the engine has %v and %d who wait, want %v and %d", i, got, waits, want, len(m.queue))
		}
	}
}

// listed returns what operators see of a lock: its holders, and how many wait.
func (s *sharing) listed(i int) (holders map[entry]int, waits int) {
	s.t.Helper()
	holders = make(map[entry]int)
	for info, err := range s.c[0].List(s.t.Context(), "rw"+string(rune('0'+i))) {
		if err != nil || (info.Kind == KindSemaphore) != (s.locks[i].limit > 0) {
			s.fail("Locks: %+v, %v", info, err)
		}
		for _, h := range info.Holders {
			who := slices.IndexFunc(s.actors, func(a *actor) bool {
				return a.ctx.Value(core.OwnerKey{}).(*core.Owner).ID == h.Owner
			})
			holders[entry{who, h.Shared, h.Weight}]++
		}
		waits += len(info.Waiters)
	}
	return s.locks[i].countable(holders), waits
}

// giveAllBack ends all waits and holds. Nothing must be left.
func (s *sharing) giveAllBack() {
	s.t.Helper()
	s.note("all is given back")
	for len(s.calls) > 0 {
		p := s.calls[0]
		if s.locks[p.lock].waits(p.h) {
			s.locks[p.lock].end(func(o *modelHold) bool { return o == p.h })
			p.want = isHeld
			p.cancel()
		}
		synctest.Wait()
		s.answers()
	}
	for i, m := range s.locks {
		for len(m.holds) > 0 {
			s.unlock(i)
			synctest.Wait()
		}
	}
	for i, c := range s.c {
		if len(c.in().EngineHolds)+len(c.in().LinesOfOne)+len(c.in().Lines)+len(c.in().Scheduler.Due) > 0 {
			s.fail("client %d keeps %d grants, %d waiters", i, len(c.in().EngineHolds), len(c.in().LinesOfOne))
		}
	}
	for info := range s.c[0].List(s.t.Context(), "") {
		s.fail("left: %+v", info)
	}
}
