package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

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
