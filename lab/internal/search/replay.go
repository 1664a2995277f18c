package search

import (
	"github.com/interlock-go/interlock/lab/internal/play"
)

// stage is a schedule under way on a real Redis.
type stage struct {
	*play.Play
	e       *Exhibit
	server  *play.Redis
	now     int64 // as in the model
	jumped  map[int]int64
	clients []*live
}

// newStage begins with a free lock, in the act that was begun.
func newStage(p *play.Play, e *Exhibit, server *play.Redis) *stage {
	p.Helper()
	server.Ask("DEL", key, goods)
	p.Watch("Redis", server.Value(key))
	return &stage{Play: p, e: e, server: server, jumped: map[int]int64{}}
}

// client returns a client, which is one of the cast from then on.
func (s *stage) client(who int) *live {
	s.Helper()
	for len(s.clients) <= who {
		n := len(s.clients)
		clock := func() int64 { return begin + s.now + int64(n) + s.jumped[n] }
		s.clients = append(s.clients, newLive(s.Play, s.e.Program, nameOf(n), s.server.Addr(), clock))
	}
	return s.clients[who]
}

// move makes one move.
func (s *stage) move(m Move) {
	s.Helper()
	if m.Action == Passes {
		s.pass()
		return
	}
	c := s.client(m.Who)
	switch m.Action {
	case Sends:
		c.steps.Step()
	case Dies:
		s.kill(c)
	case Jumps:
		s.jumped[m.Who] += jump
		s.Fate("%s's clock jumps ahead by %d s.", "%s 的时钟跳快了 %d 秒。", c.Name(), jump/1000)
	case Loses:
		c.line.LoseAnswer()
		s.Fate("%s will not hear the next answer: its connection is about to break.",
			"%s 收不到下一个应答：它的连接快断了。", c.Name())
	}
}

func (s *stage) kill(c *live) {
	s.Helper()
	next := c.steps.Next()
	c.killed.Store(true)
	c.steps.Kill()
	s.Fate("%[1]s is killed before it sends %[2]s.", "%[1]s 在发送 %[2]s 之前被杀死。", c.Name(), next)
}

// pass lets time pass. Clients that have not finished work on, or stand still between two commands.
func (s *stage) pass() {
	s.Helper()
	s.now += passes
	left, _ := s.server.Ask("PTTL", key).(int64)
	if left >= 0 {
		s.server.EndKey(key)
	}
	for _, c := range s.clients {
		if !c.inside {
			c.steps.StandsStill()
		}
	}
	if left >= 0 {
		s.Fate("%d s pass, and the lease of %d s is over (the lab shortens the wait: PEXPIRE 1).",
			"%d 秒过去了，%d 秒的租约已经到期（实验用 PEXPIRE 1 缩短等待）。", passes/1000, lease)
	} else {
		s.Fate("%d s pass, by everybody's clock.", "所有机器的时钟都过了 %d 秒。", passes/1000)
	}
	for _, c := range s.clients {
		switch {
		case !c.steps.Begun() || c.steps.Over() || c.stopped:
		case c.inside:
			c.actor.Says("works on.", "还在干活。")
		default:
			c.actor.Says("stands still before it sends %s.", "停在发送 %s 之前。", c.steps.Next())
		}
	}
}

// tries has a newcomer try to get in, and reports whether it was refused.
func (s *stage) tries(who int) bool {
	s.Helper()
	c := s.client(who)
	for !c.inside && !c.steps.Over() {
		c.steps.Step()
	}
	return !c.inside
}

// end takes away who has not finished, without a word.
func (s *stage) end() {
	s.Helper()
	for _, c := range s.clients {
		c.killed.Store(true)
		c.steps.Kill()
	}
}

// agrees compares what the clients were told with what the model has told them, and what they would send next.
func (s *stage) agrees(model *state) bool {
	s.Helper()
	ok := true
	for i, c := range s.clients {
		want := &model.clients[i]
		if len(c.past) != len(want.past) {
			s.Errorf("%s: %s has sent %d commands, in the model %d", s.e.ID, c.Name(), len(c.past), len(want.past))
			return false
		}
		for n, a := range c.past {
			got, foreseen := told(a), told(want.past[n])
			if got != foreseen {
				s.Errorf("%s: command %d of %s: the server says %s, the model %s", s.e.ID, n+1, c.Name(), got, foreseen)
				ok = false
			}
		}
		if next := play.Command(want.view.next); !want.dead && c.steps.Next() != next {
			s.Errorf("%s: %s is about to send %q, in the model %q", s.e.ID, c.Name(), c.steps.Next(), next)
			ok = false
		}
	}
	return ok
}

// told is an answer, comparable. Why none came does not matter.
func told(a answer) string {
	if a.err != nil {
		return "nothing"
	}
	return play.Answer(a.reply, nil)
}
