package search

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Step is one step of a course without faults.
type Step struct {
	Who  int        `json:"who"`
	Nth  int        `json:"nth"`
	Name string     `json:"name"`
	Text story.Text `json:"text"`

	Strikes []Action `json:"strikes"` // the faults that may follow it
}

// part is a stretch of a course: a client goes on until it is inside, or until its program is over.
type part struct {
	who  int
	over bool
}

// goOn stands for the clients that were stopped, which go on. With over they do so until none stands still: a client
// may be stopped again on its way.
const goOn = -1

// course has a holder, one who comes too early, one who comes when the holder should be gone, and one more. Who was
// stopped goes on while the third is inside.
var course = []part{
	{who: 0},
	{who: 1},
	{who: 0, over: true},
	{who: 2},
	{who: goOn},
	{who: 3},
	{who: 1, over: true},
	{who: 2, over: true},
	{who: 3, over: true},
	{who: goOn, over: true},
}

// Strikes returns the faults that can be put into a course.
func (e *Exhibit) Strikes() []Action {
	all := []Action{Dies, Stops, Passes, Loses, Cuts}
	if e.Clocks {
		all = append(all, Jumps)
	}
	return all
}

// strikesAfter returns the faults that may follow the last command of a client. Nothing but time can follow the end of
// A's program: A comes first, to a free lock, so that no fault makes its way longer. Others may get in, or wait, where
// the course without faults refuses them or lets them in.
func (e *Exhibit) strikesAfter(who int, c *client) []Action {
	if who == 0 && c.over() {
		return []Action{Passes}
	}
	return e.Strikes()
}

// Steps returns the course without faults, as the model of Redis answers it.
func (e *Exhibit) Steps(ctx context.Context) ([]Step, error) {
	s := &state{clients: make([]client, 4)}
	var all []Step
	for _, p := range course {
		for p.who != goOn && !s.clients[p.who].over() && (p.over || !s.clients[p.who].view.inside) {
			if err := s.send(ctx, e, p.who); err != nil {
				return nil, err
			}
			c := &s.clients[p.who]
			all = append(all, Step{
				Who: p.who, Nth: len(c.past), Name: nameOf(p.who), Strikes: e.strikesAfter(p.who, c),
				Text: story.Same(play.Command(c.sent) + "  →  " + play.Answer(c.past[len(c.past)-1].reply, nil)),
			})
		}
	}
	return all, nil
}

// Check returns an error if faults cannot be put into the exhibit's course.
func (e *Exhibit) Check(ctx context.Context, faults []Fault) error {
	steps, err := e.Steps(ctx)
	if err != nil {
		return err
	}
	return check(steps, faults)
}

// Break plays the exhibit's course on a real Redis, with faults, and tells what became of it.
func (e *Exhibit) Break(ctx context.Context, t testing.TB, faults []Fault) *story.Story {
	t.Helper()
	p := play.New(ctx, t, e.ID, e.Title, story.T("The course that you have put together, on a real Redis.",
		"你自己编排的过程，在真实的 Redis 上运行。"))
	server := p.Redis()
	p.Act("your faults", "你的故障")
	s := newStage(p, e, server)
	defer s.end()
	plan := newPlan(faults)
	for _, part := range course {
		s.stretch(part, plan)
	}
	plan.tellMissed(p)
	s.verdict()
	return p.Story()
}

// stretch plays one part of a course.
func (s *stage) stretch(part part, plan *plan) {
	s.Helper()
	if part.who != goOn {
		s.run(part.who, part.over, plan)
		return
	}
	for again := true; again; { // each fault stops a client once, so this ends
		again = s.letGo(plan) && part.over
	}
}

// letGo has the clients go on that were stopped, and reports whether there were any.
func (s *stage) letGo(plan *plan) bool {
	s.Helper()
	some := false
	for who, c := range s.clients {
		if c.stopped && !c.killed.Load() {
			some, c.stopped = true, false
			c.steps.GoesOn()
			s.Fate("%s goes on.", "%s 继续运行。", c.Name())
			s.run(who, true, plan)
		}
	}
	return some
}

// run lets a client go on, and strikes.
func (s *stage) run(who int, over bool, plan *plan) {
	s.Helper()
	c := s.client(who)
	for !c.steps.Over() && !c.stopped && (over || !c.inside) {
		c.steps.Step()
		plan.after(who, len(c.past), func(action Action) {
			if c.steps.Over() && action != Passes {
				nobody(s.Play, who, action)
				return
			}
			s.strike(who, action)
		})
	}
}

func (s *stage) strike(who int, action Action) {
	s.Helper()
	c := s.client(who)
	switch action {
	case Stops:
		c.stopped = true
		c.steps.StandsStill()
		s.Fate("%[1]s stands still before it sends %[2]s.", "%[1]s 停在发送 %[2]s 之前。", c.Name(), c.steps.Next())
	case Cuts:
		c.line.Cut()
		s.Fate("%[1]s's cable is cut: %[2]s will not arrive. The cable is whole again after that.",
			"%[1]s 的网线断了：%[2]s 不会到达。之后网线恢复。", c.Name(), c.steps.Next())
		s.pass()
	default:
		s.move(Move{action, who})
	}
}

// verdict tells what the faults have done.
func (s *stage) verdict() {
	s.Helper()
	if s.Clashed() {
		s.Show(true, "Two were inside at once.", "有两个人同时在里面。")
	} else {
		s.Show(true, "Never were two inside.", "任何时刻都没有两个人同时在里面。")
	}
	if !s.tries(len(s.clients)) {
		s.Show(true, "Whoever comes now gets in.", "现在来的人能进去。")
		return
	}
	s.Say("Nobody has the lock any more, and it is closed. Does it open by itself?", "已经没有人持有锁，锁却关着。它会自己打开吗？")
	s.pass()
	if s.tries(len(s.clients)) {
		s.server.Look("TTL", key)
		s.Show(true, "It never opens again.", "它再也不会打开。")
		return
	}
	s.Show(true, "It has opened with the end of its lease.", "租约到期后它打开了。")
}

// Faults of courses only. In a schedule, who is not chosen stands still, and a cut cable would be nothing new: it is a
// client that stands still while its lease ends, and whose command is lost then, or never sent.
const (
	Stops Action = "stops"
	Cuts  Action = "cuts" // a client's cable, for longer than a lease
)

// Name is what the page and the stories call a fault.
func (a Action) Name() story.Text {
	switch a {
	case Dies:
		return story.T("kill", "杀死")
	case Stops:
		return story.T("stop", "停住")
	case Passes:
		return story.T("the lease ends", "租约到期")
	case Loses:
		return story.T("lose the next answer", "丢失下一个应答")
	case Cuts:
		return story.T("cut the cable", "切断网线")
	case Jumps:
		return story.T("the clock jumps", "时钟跳变")
	default:
		return story.Same(string(a))
	}
}

// Fault strikes in a course after the n-th command of a client, counted from 1.
type Fault struct {
	Who    int    `json:"who"`
	Nth    int    `json:"nth"`
	Action Action `json:"action"`
}

// MostFaults is how many faults a course may have.
const MostFaults = 4

// check returns an error if faults cannot be put into a course.
func check(steps []Step, faults []Fault) error {
	if len(faults) > MostFaults {
		return fmt.Errorf("there are %d faults; at most %d can be put into a course", len(faults), MostFaults)
	}
	for _, f := range faults {
		at := slices.IndexFunc(steps, func(s Step) bool { return s.Who == f.Who && s.Nth == f.Nth })
		if at < 0 || len(steps[at].Strikes) == 0 {
			return fmt.Errorf("no fault can follow step %d of client %d", f.Nth, f.Who)
		}
		if !slices.Contains(steps[at].Strikes, f.Action) {
			return fmt.Errorf("there is no fault %q after step %d of client %d", f.Action, f.Nth, f.Who)
		}
	}
	return nil
}

// plan is the faults of a course under way. What the page offers behind a step may find nobody: an earlier fault may
// have shortened the client's way. The story says so then.
type plan struct {
	faults []Fault
	passed []bool // by fault: its step was reached
}

func newPlan(faults []Fault) *plan { return &plan{faults, make([]bool, len(faults))} }

// after calls strike for each fault behind a client's step.
func (p *plan) after(who, nth int, strike func(Action)) {
	for i, f := range p.faults {
		if f.Who == who && f.Nth == nth {
			p.passed[i] = true
			strike(f.Action)
		}
	}
}

// nobody tells that a fault finds a client that is dead, or whose program is over.
func nobody(p *play.Play, who int, action Action) {
	name := action.Name()
	p.Fate("The fault “%[1]s” does not strike: %[3]s does nothing any more.", "故障“%[2]s”没有发生：%[3]s 已经不再运行。",
		name.EN, name.ZH, nameOf(who))
}

// tellMissed tells of the faults whose step no client has reached.
func (p *plan) tellMissed(in *play.Play) {
	for i, f := range p.faults {
		if name := f.Action.Name(); !p.passed[i] {
			in.Fate("The fault “%[1]s” did not strike: %[3]s has not reached its step %[4]d.",
				"故障“%[2]s”没有发生：%[3]s 没有走到它的第 %[4]d 步。", name.EN, name.ZH, nameOf(f.Who), f.Nth)
		}
	}
}
