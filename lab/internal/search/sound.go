package search

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/handoff"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// soundBounds are the models of interlock's protocol that are searched: as many clients as the exhibits have, each
// once, and two clients twice, so that a late message meets a later hold.
var soundBounds = []handoff.LeaseBounds{
	{Clients: 3, Requests: 1, Lease: 2, Horizon: 1, Messages: 2},
	{Clients: 2, Requests: 2, Lease: 2, Horizon: 1, Messages: 2},
}

// soundLimit bounds these searches, which end long before it.
const soundLimit = 2_000_000

// soundResults are searched for once in a process.
var soundResults = sync.OnceValue(func() []handoff.Result { return searchSound(handoff.Sound()) })

// searchSound searches interlock's protocol with some of its rules.
func searchSound(rules handoff.Rules) []handoff.Result {
	var all []handoff.Result
	for _, b := range soundBounds {
		all = append(all, handoff.SearchLeases(rules, b, soundLimit))
	}
	return all
}

// sound tells of the same search in interlock.
func sound(p *play.Play) {
	p.Helper()
	p.Sound("the protocol of interlock, searched in the same way", "用同样的方法搜索 interlock 的协议")
	p.Say("Searched is the protocol's model (internal/handoff), not the program: clients that ask, renew, release, "+
		"take back, die and look at their own clocks, and a network that loses, delays, reorders and repeats "+
		"messages, of which two are under way at once. The number of faults has no bound. A test searches the client "+
		"itself, in virtual time on the engine in memory: two clients, at most two faults.",
		"这里搜索的是协议的模型（internal/handoff），不是程序本身：客户端会请求、续期、释放、撤回、崩溃，并查看自己的时钟；"+
			"网络会丢失、延迟、重排、重复消息，同时在途的消息最多两条。故障次数没有上限。另有测试在虚拟时间里用内存引擎搜索客户端本身："+
			"两个客户端，最多两次故障。")
	for i, r := range soundResults() {
		b := soundBounds[i]
		p.Show(r.Complete && r.Fault == "",
			"%d clients, requests of each: %d. No two are inside, and no lock is without an owner, in %d states, %d "+
				"moves; the longest way has %d.",
			"%d 个客户端，每个请求 %d 次：没有两个人同时在里面，也没有无主的锁；共 %d 个状态，%d 次转移，最长的路径有 %d 步。",
			b.Clients, b.Requests, r.States, r.Steps, r.Depth)
	}
	p.Show(true, "None within any number of moves and faults.", "无论多少步、多少次故障，都没有找到。")
}

// SoundID names interlock among the courses.
const SoundID = "interlock"

// soundLease is that of the sound lock in a course: short, because the audience waits for it.
const soundLease = 4 * time.Second

// soundStrikes are the faults that can be put into the sound lock's course. The clock that jumps is the server's: a
// client of interlock measures its lease with a clock that nobody sets (monotonic).
var soundStrikes = []Action{Dies, Stops, Passes, Cuts, Jumps}

// SoundTitle is the title of the sound lock's course.
func SoundTitle() story.Text {
	return story.T("interlock, in processes of its own", "interlock，各在自己的进程里")
}

// SoundStrikes returns the faults that can be put into the sound lock's course.
func SoundStrikes() []Action { return soundStrikes }

// SoundSteps returns the course of the sound lock without faults: the same clients in the same order.
func SoundSteps() []Step {
	held := story.T("TryLock  →  held", "TryLock  →  拿到锁")
	refused := story.T("TryLock  →  ErrHeld", "TryLock  →  ErrHeld")
	works := story.T("works", "干活")
	unlocks := story.T("Unlock", "Unlock")
	none := []Action{} // the page wants a list
	return []Step{
		{Who: 0, Nth: 1, Name: "A", Text: held, Strikes: soundStrikes},
		{Who: 1, Nth: 1, Name: "B", Text: refused, Strikes: none},
		{Who: 0, Nth: 2, Name: "A", Text: works, Strikes: soundStrikes},
		{Who: 0, Nth: 3, Name: "A", Text: unlocks, Strikes: none},
		{Who: 2, Nth: 1, Name: "C", Text: held, Strikes: soundStrikes},
		{Who: 3, Nth: 1, Name: "D", Text: refused, Strikes: none},
		{Who: 2, Nth: 2, Name: "C", Text: works, Strikes: soundStrikes},
		{Who: 2, Nth: 3, Name: "C", Text: unlocks, Strikes: none},
	}
}

// CheckSound returns an error if faults cannot be put into the sound lock's course.
func CheckSound(faults []Fault) error { return check(SoundSteps(), faults) }

// process is a client of the sound lock in a course.
type process struct {
	*play.Process
	name          string
	cable         *servers.Proxy
	done          int // of its three steps: it takes the lock, works, releases
	holds         bool
	dead, stopped bool
	early         bool // the server has ended its lease before its time
}

// soundCourse is one under way.
type soundCourse struct {
	*play.Play
	plan    *plan
	server  *play.Redis
	clients []*process
}

// BreakSound plays the sound lock's course on a real Redis, with faults, and tells what became of it.
func BreakSound(ctx context.Context, t testing.TB, faults []Fault) *story.Story {
	t.Helper()
	p := play.New(ctx, t, SoundID, SoundTitle(), story.T(
		"The course that you have put together, with clients in processes of their own: kill -9, SIGSTOP, real leases.",
		"你自己编排的过程，客户端是独立的进程：kill -9、SIGSTOP，租约也是真的。"))
	server := p.Redis()
	begin := p.Sound
	if slices.ContainsFunc(faults, func(f Fault) bool { return f.Action == Jumps }) {
		begin = p.Fenced // two may be inside, and the verdict says so
	}
	begin("your faults", "你的故障")
	p.WatchLock("Redis", server.URL(), key)
	s := &soundCourse{Play: p, plan: newPlan(faults), server: server}
	for who := range 4 {
		s.clients = append(s.clients, s.process(server, nameOf(who)))
	}
	s.run(0, 1)
	s.run(1, 3)
	s.run(0, 3)
	s.run(2, 1)
	s.goOn()
	for who := 3; who > 0; who-- {
		s.run(who, 3)
	}
	s.goOn()
	s.plan.tellMissed(p)
	s.verdict(server)
	return p.Story()
}

func (s *soundCourse) process(server *play.Redis, name string) *process {
	s.Helper()
	cable := servers.NewProxy(s, server.Addr())
	return &process{Process: s.Process(name, "redis://"+cable.Addr(), key, soundLease), name: name, cable: cable}
}

// run has a client do its steps up to one of them, and strikes. Who was refused does nothing more.
func (s *soundCourse) run(who, last int) {
	s.Helper()
	c := s.clients[who]
	for c.done < last && !c.dead && !c.stopped && (c.done == 0 || c.holds) {
		c.done++
		switch c.done {
		case 1:
			c.holds = c.TryLock()
		case 2:
			c.Says("works.", "干活。")
		case 3:
			c.holds = false
			c.Unlock()
		}
		s.plan.after(who, c.done, func(action Action) {
			if (c.dead || !c.holds) && action != Passes {
				nobody(s.Play, who, action)
				return
			}
			s.strike(c, action)
		})
	}
}

func (s *soundCourse) strike(c *process, action Action) {
	s.Helper()
	switch action {
	case Dies:
		c.Kill()
		c.dead = true
	case Stops:
		if !c.stopped {
			c.Stop()
			c.stopped = true
		}
	case Passes:
		s.Passes(soundLease*3/2, "%s pass, longer than the lease of %s. A holder that lives has renewed it.",
			"%s 过去了，比 %s 的租约长。活着的持有者已经续期。",
			story.Seconds(soundLease*3/2), story.Seconds(soundLease))
		s.noticed()
	case Cuts:
		s.cut(c)
	case Jumps:
		c.early = true
		s.server.TimePasses("interlock:mutex:"+key,
			"The server's clock jumps ahead, and the lease ends there (the lab ends it: PEXPIRE 1).",
			"服务器的时钟向前跳，租约在那里到期（实验用 PEXPIRE 1 让它到期）。")
	}
}

// noticed has those told whose lease the server had ended before its time: their renewals have found nothing.
func (s *soundCourse) noticed() {
	s.Helper()
	for _, c := range s.clients {
		if c.early && c.holds && !c.dead && !c.stopped {
			c.Told()
			c.holds = false
		}
	}
}

// cut keeps a client from its server for longer than a lease. What both have sent meanwhile arrives after that.
func (s *soundCourse) cut(c *process) {
	s.Helper()
	c.cable.BlackHole(servers.BothWays)
	s.Fate("%s's cable is cut.", "%s 的网线断了。", c.name)
	if !c.stopped { // else it looks when it goes on
		c.Told()
		c.holds = false
	}
	s.Passes(soundLease*3/2, "%s later the cable is whole again. What was on its way arrives now, too late.",
		"%s 之后网线恢复。路上的消息现在才到，已经太晚。", story.Seconds(soundLease*3/2))
	c.cable.Pass()
	s.noticed()
}

// goOn lets those go on that were stopped.
func (s *soundCourse) goOn() {
	s.Helper()
	for who, c := range s.clients {
		if c.stopped && !c.dead {
			c.stopped = false
			c.holds = c.Continue()
			s.run(who, 3)
		}
	}
}

// anyEarly reports whether the server has ended a lease before its time.
func (s *soundCourse) anyEarly() bool {
	return slices.ContainsFunc(s.clients, func(c *process) bool { return c.early })
}

// verdict tells what the faults have done: whoever comes waits for what a dead holder has left.
func (s *soundCourse) verdict(server *play.Redis) {
	s.Helper()
	if s.Clashed() {
		s.Show(s.anyEarly(),
			"Two were inside at once. No lock is better than its server's clock: where that may jump, let the "+
				"resource refuse the older token (D10).",
			"有两个人同时在里面。锁不可能比它的服务器的时钟更可靠：时钟可能跳变时，要让资源拒绝旧令牌（D10）。")
	} else {
		s.Show(true, "Never were two inside.", "任何时刻都没有两个人同时在里面。")
	}
	e := s.process(server, "E")
	e.Process.Lock()
	s.Show(true, "Whoever comes now gets in, at the latest when a dead holder's lease is over.",
		"现在来的人能进去，最迟等到崩溃的持有者租约到期。")
	e.Unlock()
}
