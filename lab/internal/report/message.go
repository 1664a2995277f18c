package report

import "github.com/interlock-go/interlock/lab/internal/story"

// arrow is one message, from one lane to another.
type arrow struct {
	X        float64
	From, To int    // heights
	Class    string // request, reply, or lost for a request that is not answered
	Down     int    // how far it goes on over the lanes of several servers, or 0
}

// Fan is where the line over the lanes of several servers begins.
func (a arrow) Fan() int { return max(a.From, a.To) }

// apart is how far a request stands from its reply, to both sides of the step.
const apart = 4

// addMessages draws what went over the wire.
func (p *picture) addMessages() {
	for i := range p.act.Steps {
		s := &p.act.Steps[i]
		if s.Message == nil {
			continue
		}
		from, to := p.find(s.Who), p.find(s.Message.To)
		if len(from) == 0 || len(to) == 0 {
			continue // nobody of the picture
		}
		upper, lower := from[0].Middle()+bar/2, to[0].Bar()
		down := to[len(to)-1].Middle() - to[0].Middle()
		x := p.axis.xs[i]
		if s.Message.Way != story.Reply {
			class := "request"
			if s.Message.Way == story.Lost {
				class = "lost"
			}
			p.Arrows = append(p.Arrows, arrow{x - apart, upper, lower, class, down})
		}
		if s.Message.Way == story.Both || s.Message.Way == story.Reply {
			p.Arrows = append(p.Arrows, arrow{x + apart, lower, upper, "reply", down})
		}
	}
}

// mark is what befell a client: it was killed, or stopped.
type mark struct {
	X    float64
	Y    int
	Kind string // killed or stopped
}

// Shape is the path of the mark's sign.
func (m mark) Shape() string {
	if m.Kind == "killed" {
		return "M-6 -6L6 6M6 -6L-6 6"
	}
	return "M-3 -6V6M3 -6V6"
}

// addMarks draws who was killed or stopped, and when.
func (p *picture) addMarks() {
	for lane, name := range p.act.Cast {
		before := story.Idle
		for i := range p.act.Steps {
			now := p.act.Steps[i].States[name]
			kind := ""
			switch now {
			case story.Dead:
				kind = "killed"
			case story.Still, story.Halted:
				kind = "stopped"
			}
			if kind != "" && now != before {
				p.Marks = append(p.Marks, mark{p.axis.xs[i], p.Lanes[lane].Middle(), kind})
			}
			before = now
		}
	}
}
