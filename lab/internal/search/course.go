package search

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Faults of courses only. In a schedule, who is not chosen stands still, and a cut cable would be nothing new: it is a
// client that stands still while its lease ends, and whose command is lost then, or never sent.
const (
	Stops Action = "stops"
	Cuts  Action = "cuts" // a client's cable, for longer than a lease
)

// Fault strikes in a course after the n-th command of a client, counted from 1.
type Fault struct {
	Who    int    `json:"who"`
	Nth    int    `json:"nth"`
	Action Action `json:"action"`
}

// Step is one step of a course without faults.
type Step struct {
	Who    int        `json:"who"`
	Nth    int        `json:"nth"`
	Name   string     `json:"name"`
	Text   story.Text `json:"text"`
	Strike bool       `json:"strike"` // a fault may follow it
}

// MostFaults is how many faults a course may have.
const MostFaults = 4

// part is a stretch of a course: a client goes on until it is inside, or until its program is over.
type part struct {
	who  int
	over bool
}

// goOn stands for the clients that were stopped, which go on until they are over.
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
	{who: goOn},
}

// Strikes returns the faults that can be put into a course.
func (e *Exhibit) Strikes() []Action {
	all := []Action{Dies, Stops, Passes, Loses, Cuts}
	if e.Clocks {
		all = append(all, Jumps)
	}
	return all
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
				Who: p.who, Nth: len(c.past), Name: nameOf(p.who), Strike: true,
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
	return check(steps, e.Strikes(), faults)
}

func check(steps []Step, strikes []Action, faults []Fault) error {
	if len(faults) > MostFaults {
		return fmt.Errorf("there are %d faults; at most %d can be put into a course", len(faults), MostFaults)
	}
	for _, f := range faults {
		if !slices.Contains(strikes, f.Action) {
			return fmt.Errorf("there is no fault %q here", f.Action)
		}
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.Who == f.Who && s.Nth == f.Nth && s.Strike }) {
			return fmt.Errorf("no fault can follow step %d of client %d", f.Nth, f.Who)
		}
	}
	return nil
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
	for _, part := range course {
		s.stretch(part, faults)
	}
	s.verdict()
	return p.Story()
}

// stretch plays one part of a course.
func (s *stage) stretch(part part, faults []Fault) {
	s.Helper()
	if part.who == goOn {
		for who, c := range s.clients {
			if c.stopped && !c.killed.Load() {
				c.stopped = false
				c.steps.GoesOn()
				s.Fate("%s goes on.", "%s 继续运行。", c.Name())
				s.run(who, true, faults)
			}
		}
		return
	}
	s.run(part.who, part.over, faults)
}

// run lets a client go on, and strikes.
func (s *stage) run(who int, over bool, faults []Fault) {
	s.Helper()
	c := s.client(who)
	for !c.steps.Over() && !c.stopped && (over || !c.inside) {
		c.steps.Step()
		for _, f := range faults {
			if f.Who == who && f.Nth == len(c.past) && (!c.steps.Over() || f.Action == Passes) {
				s.strike(who, f.Action)
			}
		}
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
