package report

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// More measures, in pixels.
const (
	ruler = 20 // the ruler's line
	heads = 44 // where the lines from the ruler end, and the numbers of the steps begin
	top   = 66 // of the first lane
	lane  = 34 // the height of a lane
	bar   = 18 // of a bar in it
	most  = 12 // the longest text that fits beside a bar's begin
)

// picture is one act: a lane for each client and for each server, time from left to right, and what goes between them.
type picture struct {
	ID            string
	Width, Height float64
	Ticks         []tick
	Lanes         []*row
	Steps         []stepMark
	Clashes       []span // of steps in which two believed to hold the lock
	Fates         []float64
	Arrows        []arrow
	Marks         []mark

	axis *axis
	act  *story.Act
}

// row is one lane.
type row struct {
	Name   string
	Top    int
	Server bool
	Bars   []span
	Leases []wedge
}

// Title is the lane's name as the picture writes it.
func (r *row) Title() story.Text {
	if r.Server {
		return story.Server(r.Name)
	}
	return story.Same(r.Name)
}

// Middle is the height of the lane's centre.
func (r *row) Middle() int { return r.Top + lane/2 }

// Bar is the upper edge of the lane's bars.
func (r *row) Bar() int { return r.Middle() - bar/2 }

// Floor is the lower edge of the lane's bars.
func (r *row) Floor() int { return r.Middle() + bar/2 }

// Text is the base line of texts.
func (r *row) Text() int { return r.Middle() + 4 }

// Plate is the upper edge of what stands behind the lane's name, and hides what would pass there.
func (r *row) Plate() int { return r.Top + 1 }

// span is a bar over some steps.
type span struct {
	X, Width float64
	Class    string // a state, server or clash
	Label    string // on a server's bar: who has the lock
}

// LabelX is where a bar's label begins.
func (s span) LabelX() float64 { return s.X + 4 }

// stepMark is the head of a column, and the line from the ruler to it.
type stepMark struct {
	Number   int
	X, Exact float64
	Class    string // the step's kind
}

// draw makes the picture of an act.
func draw(id string, a *story.Act) *picture {
	p := &picture{ID: id, axis: newAxis(a.Steps), act: a}
	p.Width, p.Ticks = p.axis.right(), p.axis.ticks()
	for i := range a.Steps {
		s := &a.Steps[i]
		p.Steps = append(p.Steps, stepMark{i + 1, p.axis.xs[i], p.axis.exact(s.At), string(s.Kind)})
		if s.Kind == story.Fate && s.Who == "" {
			p.Fates = append(p.Fates, p.axis.xs[i])
		}
	}
	for _, name := range a.Cast {
		p.add(name, false, p.bars(func(s *story.Step) (string, string) { return string(s.States[name]), "" }))
	}
	p.addOthers(false)
	for i, server := range a.Keys {
		r := p.add(server, true, p.bars(func(s *story.Step) (string, string) {
			if i >= len(s.Held) || s.Held[i] == "" { // it was not asked yet, or nobody has the lock
				return "", ""
			}
			return "server", shorten(s.Held[i])
		}))
		r.Leases = p.leases(i)
	}
	p.addOthers(true)
	p.Clashes = p.bars(func(s *story.Step) (string, string) {
		if len(s.Believers()) > 1 {
			return "clash", ""
		}
		return "", ""
	})
	p.addMessages()
	p.addMarks()
	p.Height = float64(top + lane*len(p.Lanes) + 6)
	return p
}

func (p *picture) add(name string, server bool, bars []span) *row {
	r := &row{Name: name, Top: top + lane*len(p.Lanes), Server: server, Bars: bars}
	p.Lanes = append(p.Lanes, r)
	return r
}

// addOthers adds lanes for speakers that are not of the cast, such as redis-cli, or for servers that are spoken to
// and not watched.
func (p *picture) addOthers(servers bool) {
	for i := range p.act.Steps {
		s := &p.act.Steps[i]
		if s.Message == nil {
			continue
		}
		name := s.Who
		if servers {
			name = s.Message.To
		}
		if len(p.find(name)) == 0 {
			p.add(name, servers, nil)
		}
	}
}

// find returns the lanes of a name. A message may name its server in more words than the lane, or in fewer.
func (p *picture) find(name string) []*row {
	var all []*row
	for _, r := range p.Lanes {
		switch {
		case r.Name == name:
			return []*row{r}
		case !r.Server: // a client's name may begin as another's
		case name == story.AllNodes && strings.HasPrefix(r.Name, "node "):
			all = append(all, r)
		case len(all) == 0 && (strings.HasPrefix(name, r.Name) || strings.HasPrefix(r.Name, name)):
			all = append(all, r)
		}
	}
	return all
}

// bars returns a bar for each run of steps that have the same class and label; an empty class has none.
func (p *picture) bars(of func(*story.Step) (class, label string)) []span {
	var all []span
	for begin := 0; begin < len(p.act.Steps); {
		class, label := of(&p.act.Steps[begin])
		end := begin + 1
		for ; end < len(p.act.Steps); end++ {
			if c, l := of(&p.act.Steps[end]); c != class || l != label {
				break
			}
		}
		if class != "" {
			x := p.axis.xs[begin]
			all = append(all, span{X: x, Width: tenth(p.axis.after(end-1) - x), Class: class, Label: label})
		}
		begin = end
	}
	return slices.Clip(all)
}

// shorten cuts a value that is too long for a bar.
func shorten(s string) string {
	if len(s) > most {
		return s[:most-1] + "…"
	}
	return s
}
