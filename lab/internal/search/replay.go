package search

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
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

// Run searches an exhibit, replays what it finds on a real Redis, and tells it. What the replay does not show, or what
// the server answers otherwise than the model, is an error of t.
func (e *Exhibit) Run(ctx context.Context, t testing.TB) *story.Story {
	t.Helper()
	r, err := Search(ctx, e, Usual)
	if err != nil {
		t.Fatalf("%s: %v", e.ID, err)
	}
	p := play.New(ctx, t, e.ID, e.Title, e.about(r, Usual))
	server := p.Redis()
	for _, kind := range Kinds {
		if f := r.Found[kind]; f != nil {
			f.replay(p, e, server)
		}
	}
	p.Act("what the search did not find", "搜索没有找到的")
	for _, kind := range Kinds {
		if r.Found[kind] == nil {
			p.Show(true, "None: %[1]s.", "没有：%[2]s。", titles[kind].EN, titles[kind].ZH)
		}
	}
	sound(p)
	return p.Story()
}

// about tells what was searched.
func (e *Exhibit) about(r *Result, b Bounds) story.Text {
	faults := story.T("a client is killed, an answer is lost, time passes for longer than a lease",
		"客户端被杀死、应答丢失、过去的时间超过租约")
	if e.Clocks {
		faults = story.Join(faults, story.T(", a clock jumps", "、时钟跳变"))
	}
	return story.T("All schedules of %[1]d clients with at most %[2]d faults (%[3]s), the shortest first: %[5]d "+
		"states, %[6]d moves, the longest way has %[7]d. Each client takes the lock, writes and releases, with the "+
		"exhibit's own code; whoever is not chosen stands still. What was found is replayed on a real Redis.",
		"%[1]d 个客户端、最多 %[2]d 次故障（%[4]s）的全部调度，从最短的开始：%[5]d 个状态，%[6]d 次转移，最长的路径有 %[7]d 步。"+
			"每个客户端都用展品自己的代码加锁、写入、释放；没有轮到的就停着。找到的调度在真实的 Redis 上重放。",
		b.Clients, b.Faults, faults.EN, faults.ZH, r.States, r.Moves, r.Longest)
}

// replay plays a schedule on a real Redis, and shows that it fails there as in the model.
func (f *Found) replay(p *play.Play, e *Exhibit, server *play.Redis) {
	p.Helper()
	p.Act(titles[f.Kind].EN, titles[f.Kind].ZH)
	s := newStage(p, e, server)
	defer s.end()
	p.Say("Found by the search: moves: %d, faults among them: %d. No shorter schedule does this.",
		"搜索找到的：共 %d 步，其中故障 %d 步。没有更短的调度。", len(f.Moves), f.Faults)
	for _, m := range f.Moves {
		s.move(m)
	}
	agrees := s.agrees(f.last)
	f.show(s)
	p.Show(agrees, "The server has answered each command as the model had foreseen.", "服务器对每条命令的应答都和模型预计的一样。")
}

// show tells what the schedule has led to.
func (f *Found) show(s *stage) {
	s.Helper()
	switch f.Kind {
	case Robbed:
		s.ShowClash("Two are inside, and neither has had the lock for longer than its lease.",
			"两个人同时在里面，谁占用锁的时间都没有超过租约。")
	case Overrun:
		s.ShowClash("Two are inside. One has overrun its lease, and nothing tells it.",
			"两个人同时在里面。其中一个的租约已经到期，却没有人告诉它。")
	case Left:
		s.Show(s.tries(f.last.clone().newcomer()), "Nobody has the lock, all have released it, and it is closed.",
			"没有人持有锁，所有人都释放了，锁却关着。")
	case Never:
		s.pass()
		s.server.Look("TTL", key)
		s.Show(s.tries(f.last.clone().newcomer()),
			"Nobody has the lock, and it does not open again, however long one waits.",
			"没有人持有锁，无论等多久它都不会再打开。")
	}
}
