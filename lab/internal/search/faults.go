package search

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

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
