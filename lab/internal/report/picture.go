package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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

// The measures of a picture, in pixels.
const (
	left   = 104 // where time begins
	column = 26  // of one step, at least
	spare  = 150 // shared out among the steps by the time that passes between them, at least
	usual  = 620 // the width of a picture, unless it has many steps
	edge   = 16  // behind the last step
)

// axis is the time of an act. Most steps follow each other within a millisecond, and then four seconds pass. A ruler
// alone would put ten steps on one pixel, and columns alone would hide the wait. So there are both: a ruler to scale,
// and below it a column for each step, wider the more time passes before the next. A line leads from one to the other.
type axis struct {
	times []time.Duration
	xs    []float64 // of the columns
	spare float64
}

func newAxis(steps []story.Step) *axis {
	a := &axis{spare: max(spare, usual-left-edge-column*float64(len(steps)))}
	for i := range steps {
		a.times = append(a.times, steps[i].At)
	}
	for i, t := range a.times {
		a.xs = append(a.xs, tenth(left+column/2+float64(i)*column+a.spare*a.share(t)))
	}
	return a
}

// share is the part of the act that is over at t, between 0 and 1.
func (a *axis) share(t time.Duration) float64 {
	if a.span() == 0 {
		return 0
	}
	return min(max(float64(t-a.times[0])/float64(a.span()), 0), 1)
}

func (a *axis) span() time.Duration {
	if len(a.times) == 0 {
		return 0
	}
	return a.times[len(a.times)-1] - a.times[0]
}

// right is where the picture ends.
func (a *axis) right() float64 { return left + float64(len(a.times))*column + a.spare + edge }

// exact is where t is on the ruler.
func (a *axis) exact(t time.Duration) float64 {
	return tenth(left + column/2 + a.share(t)*(a.right()-left-column-edge))
}

// tenth leaves out digits that nobody can see.
func tenth(x float64) float64 { return math.Round(x*10) / 10 }

// x is where t is among the columns: between two steps in proportion.
func (a *axis) x(t time.Duration) float64 {
	for i, at := range a.times {
		if t > at {
			continue
		}
		if i == 0 || t == at {
			return a.xs[i]
		}
		part := float64(t-a.times[i-1]) / float64(at-a.times[i-1])
		return tenth(a.xs[i-1] + part*(a.xs[i]-a.xs[i-1]))
	}
	return a.right()
}

// after is where step i ends: at the next one, or at the edge.
func (a *axis) after(i int) float64 {
	if i+1 < len(a.xs) {
		return a.xs[i+1]
	}
	return a.right()
}

// tick is a mark of the ruler.
type tick struct {
	X     float64
	Label string
}

// ticks returns some five marks at round times since the act began.
func (a *axis) ticks() []tick {
	span := a.span()
	if span == 0 {
		return nil
	}
	every := round(span / 5)
	var all []tick
	for t := time.Duration(0); t <= span; t += every {
		all = append(all, tick{a.exact(a.times[0] + t), short(t)})
	}
	return all
}

// round returns the next larger duration of the kind 1, 2 or 5, with zeros.
func round(d time.Duration) time.Duration {
	power := math.Pow10(int(math.Floor(math.Log10(float64(max(d, 1))))))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= float64(d) {
			return time.Duration(digit * power)
		}
	}
	return time.Duration(10 * power)
}

// short is a time since an act began, with as many digits as its size needs.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d.Microseconds())/1000)
	default:
		return fmt.Sprintf("%.4g s", d.Seconds())
	}
}

// wedge is the lease of one holder on one server: as high as the bar when it is full, and sinking until it ends or is
// renewed.
type wedge struct {
	Points string // of a polygon; the bar's lower edge is 0, its upper edge -bar
	Class  string // lease, or forever for one without an end
}

// known is how much of a lease was left at some instant.
type known struct {
	at   time.Duration
	left time.Duration
}

// leases returns the leases of the server of that number.
func (p *picture) leases(server int) []wedge {
	steps := p.act.Steps
	held := func(i int) string {
		if server >= len(steps[i].Held) || server >= len(steps[i].Left) {
			return ""
		}
		return steps[i].Held[server]
	}
	var all []wedge
	for begin := 0; begin < len(steps); {
		who, end := held(begin), begin+1
		for end < len(steps) && held(end) == who {
			end++
		}
		if who != "" {
			all = append(all, p.lease(server, who, begin, end)...)
		}
		begin = end
	}
	return all
}

// lease returns who's lease over the steps from begin to before end; none if the server does not tell of it.
func (p *picture) lease(server int, who string, begin, end int) []wedge {
	var facts []known
	for i := begin; i < end; i++ {
		switch ms := p.act.Steps[i].Left[server]; {
		case ms == story.Forever:
			x, to := p.axis.xs[begin], p.axis.after(end-1)
			return []wedge{{rectangle(x, to), "forever"}}
		case ms > 0:
			facts = append(facts, known{p.act.Steps[i].At, time.Duration(ms) * time.Millisecond})
		}
	}
	if len(facts) == 0 {
		return nil
	}
	last := p.act.Steps[end-1].At
	over := end < len(p.act.Steps)
	if over {
		last = p.act.Steps[end].At
	}
	for _, b := range p.act.Beats {
		if b.Who == who && b.At > facts[0].at && b.At < last {
			facts = append(facts, known{b.At, time.Duration(b.Left) * time.Millisecond})
		}
	}
	slices.SortStableFunc(facts, func(a, b known) int { return cmp.Compare(a.at, b.at) })
	return []wedge{{p.outline(facts, last, over), "lease"}}
}

// outline is the polygon of a lease of which these facts are known, until last, when it is over or the act is.
func (p *picture) outline(facts []known, last time.Duration, over bool) string {
	full := slices.MaxFunc(facts, func(a, b known) int { return cmp.Compare(a.left, b.left) }).left
	height := func(left time.Duration) float64 { return 0 - bar*float64(max(left, 0))/float64(full) }
	var b strings.Builder
	point := func(at time.Duration, y float64) { fmt.Fprintf(&b, "%.1f,%.1f ", p.axis.x(at), y) }
	point(facts[0].at, 0)
	for i, f := range facts {
		next := last
		if i+1 < len(facts) {
			next = facts[i+1].at
		}
		point(f.at, height(f.left))
		if f.at+f.left < next { // it ends before anybody looks again
			point(f.at+f.left, 0)
		}
		point(next, height(f.at+f.left-next))
	}
	if !over { // nobody has looked since: to the edge, as it was
		fmt.Fprintf(&b, "%.1f,%.1f %.1f,0 ", p.axis.right(), height(facts[len(facts)-1].left), p.axis.right())
	} else {
		point(last, 0)
	}
	return strings.TrimSpace(b.String())
}

func rectangle(x, to float64) string {
	return fmt.Sprintf("%.1f,0 %.1f,%d %.1f,%d %.1f,0", x, x, -bar, to, -bar, to)
}

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
