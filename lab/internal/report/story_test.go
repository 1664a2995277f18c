package report

import (
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// standings are states by name, as in "A holds".
func standings(pairs ...string) map[string]story.State {
	all := map[string]story.State{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = story.State(pairs[i+1])
	}
	return all
}

func ask(at time.Duration, who, text string, states map[string]story.State, held string, left int64) story.Step {
	return story.Step{
		At: at, Who: who, Kind: story.Asks, Text: story.Same(text), States: states,
		Held: []string{held}, Left: []int64{left}, Message: &story.Message{To: "Redis", Way: story.Both},
		Code: map[string][]string{who: {"d03blinddel/lock.go:20"}},
	}
}

// flawed is an exhibit's act: A overruns its lease, B gets in beside it.
func flawed() *story.Act {
	const ms = time.Millisecond
	a := &story.Act{Title: story.T("an overrun", "超时"), Cast: []string{"A", "B", "C"}, Keys: []string{"Redis"}}
	a.Steps = []story.Step{
		ask(1*ms, "A", "SET <k> A  →  OK", standings("A", "holds"), "A", 10_000),
		{
			At: 2 * ms, Kind: story.Fate, Text: story.T("time passes", "时间流逝"),
			States: standings("A", "holds"), Held: []string{""}, Left: []int64{0},
		},
		ask(3*ms, "B", "SET <k> B  →  OK", standings("A", "holds", "B", "holds"), "B", 10_000),
		{
			At: 3 * ms, Kind: story.Clash, Text: story.T("two", "两个"),
			States: standings("A", "holds", "B", "holds"), Held: []string{"B"}, Left: []int64{9_999},
		},
		{At: 5 * ms, Kind: story.Shown, Text: story.T("shown", "重现了"), Held: []string{""}, Left: []int64{0}},
	}
	return a
}

// sound is interlock in the same events: A stands still, B waits for the end of A's lease, which was renewed once.
func sound() *story.Act {
	const s = time.Second
	a := &story.Act{
		Title: story.T("A stands still", "A 停住"), Sound: true, Cast: []string{"A", "B"}, Keys: []string{"Redis"},
		Beats: []story.Beat{{At: 12 * s, Who: "A", Left: 4000}},
	}
	a.Steps = []story.Step{
		ask(10*s, "A", "Lock  →  held", standings("A", "holds"), "A", 4000),
		{
			At: 13 * s, Who: "A", Kind: story.Fate, Text: story.T("stands still", "停住"),
			States: standings("A", "still"), Held: []string{"A"}, Left: []int64{3000},
		},
		{
			At: 13 * s, Who: "B", Kind: story.Says, Text: story.T("waits", "排队"),
			States: standings("A", "still", "B", "waits"), Held: []string{"A"}, Left: []int64{3000},
			Message: &story.Message{To: "Redis", Way: story.Request},
		},
		ask(16*s, "B", "Lock  →  held", standings("A", "still", "B", "holds"), "B", 4000),
		ask(16*s, "B", "Unlock  →  nil", standings("A", "still"), "", 0),
	}
	for i := range a.Steps {
		a.Steps[i].Code = nil
	}
	a.Steps[3].Message.Way = story.Reply
	return a
}

func example() *story.Story {
	return &story.Story{
		ID: "D0", Title: story.T("a <title>", "标题"), About: story.T("about", "说明"),
		Acts: []*story.Act{flawed(), sound()},
	}
}
