package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/svg"
)

// Sizes of the picture, in pixels.
const (
	pictureWidth = 900
	plotLeft     = 200
	plotRight    = pictureWidth - 16
	headHeight   = 62
	panelHeight  = 76
	panelGap     = 22
	bandHeight   = 12
	bandStep     = 20
	groupGap     = 14
	footHeight   = 56
	nearMarks    = 90
)

// svg draws the record.
func (r *record) svg() []byte {
	c := &canvas{record: r, y: headHeight}
	for _, p := range r.panels {
		c.panel(p)
	}
	for _, b := range r.bands {
		c.band(b)
	}
	c.axis()
	c.drawMarks()
	height := c.y + footHeight
	c.legend(height)
	var b strings.Builder
	b.WriteString(svg.Begin("What Prometheus saw: trades, waits, renewals, losses and alerts over time",
		pictureWidth, height, 11))
	b.WriteString(`<text class="ink" x="16" y="24" font-size="15">` +
		"What Prometheus saw of a link that was cut, and of a holder that stood still</text>\n")
	b.WriteString(c.under.String())
	b.WriteString(c.over.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// canvas is a picture that grows downwards.
type canvas struct {
	*record
	y           int
	under, over strings.Builder // what is drawn first, and after that
}

// x is where a time is.
func (c *canvas) x(t time.Time) float64 {
	all := max(c.to.Sub(c.from), time.Millisecond)
	return plotLeft + float64(plotRight-plotLeft)*max(0, min(1, float64(t.Sub(c.from))/float64(all)))
}

// panel draws a diagram.
func (c *canvas) panel(p panel) {
	top, bottom := float64(c.y), float64(c.y+panelHeight)
	most := 1.0
	for _, l := range p.lines {
		for _, point := range l.points {
			most = max(most, point.value)
		}
	}
	most = niceAbove(most)
	at := func(v float64) float64 { return bottom - (bottom-top)*v/most }
	for _, v := range []float64{0, most / 2, most} {
		c.across("grid", at(v), "none")
		c.text("faint", plotLeft-6, at(v)+4, "end", fmt.Sprint(v))
	}
	fmt.Fprintf(&c.over, `<text class="ink" x="16" y="%.1f" font-size="12">%s</text>`+"\n", top+9, p.title)
	if p.limit > 0 {
		c.across("limit", at(p.limit), "5 4")
		c.text("fred", 16, top+28, "start", fmt.Sprint("alert above ", p.limit))
	}
	for i, l := range p.lines {
		c.line(l, at, p.steps)
		if l.name != "" {
			c.text("f"+l.colour, 16, top+28+float64(i)*16, "start", l.name)
		}
	}
	c.y += panelHeight + panelGap
}

// line draws an expression, with a break where there was nothing to be seen.
func (c *canvas) line(l line, at func(float64) float64, steps bool) {
	var path strings.Builder
	var last time.Time
	for _, p := range l.points {
		step := "L"
		if p.at.Sub(last) > 2*scrapes {
			step = "M"
		} else if steps {
			fmt.Fprintf(&path, "H%.1f", c.x(p.at))
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", step, c.x(p.at), at(p.value))
		last = p.at
	}
	if path.Len() > 0 {
		fmt.Fprintf(&c.over, `<path class="line %s" d="%s"/>`+"\n", l.colour, path.String())
	}
}

// band draws when something was so.
func (c *canvas) band(b band) {
	if b.below {
		c.y += groupGap
	}
	c.across("grid", float64(c.y)+bandHeight/2, "none")
	c.text("ink", 16, float64(c.y)+bandHeight-2, "start", b.name)
	for _, s := range b.spans {
		c.box(s.colour, c.x(s.from), float64(c.y), c.x(s.to)-c.x(s.from), bandHeight)
	}
	c.y += bandStep
}

// axis draws the seconds.
func (c *canvas) axis() {
	for t := time.Duration(0); t <= c.to.Sub(c.from); t += 5 * time.Second {
		x := c.x(c.from.Add(t))
		c.down("grid", x, headHeight, "none")
		if t%(10*time.Second) == 0 {
			c.text("faint", x, float64(c.y)+16, "middle", fmt.Sprintf("%.0f s", t.Seconds()))
		}
	}
}

// drawMarks draws what was done, as lines through everything.
func (c *canvas) drawMarks() {
	for i, m := range c.marks {
		x, anchor, shift := c.x(m.at), "middle", 0.0
		switch { // two that are near each other have their texts on the outside
		case i > 0 && x-c.x(c.marks[i-1].at) < nearMarks:
			anchor, shift = "start", 4
		case i+1 < len(c.marks) && c.x(c.marks[i+1].at)-x < nearMarks:
			anchor, shift = "end", -4
		}
		c.down("mark", x, headHeight-8, "2 3")
		c.text("ink", x+shift, headHeight-14, anchor, m.text)
	}
}

// legend says what the colours of alerts are.
func (c *canvas) legend(height int) {
	y := float64(height) - 14
	c.box("pending", plotLeft, y-9, 18, 10)
	c.text("faint", plotLeft+24, y, "start", "alert pending")
	c.box("red", plotLeft+120, y-9, 18, 10)
	c.text("faint", plotLeft+144, y, "start", "alert fires")
	c.text("faint", plotRight, y, "end",
		fmt.Sprintf("a lease is %.0f s; a second for each minute of the rules", lease.Seconds()))
}

// across draws a line over the width of the diagrams: a grid's below what they show, a limit above it.
func (c *canvas) across(class string, y float64, dashes string) {
	b := &c.over
	if class == "grid" {
		b = &c.under
	}
	fmt.Fprintf(b, `<line class="%s" x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke-dasharray="%s"/>`+"\n",
		class, plotLeft, y, plotRight, y, dashes)
}

// down draws a line from there to where the canvas ends.
func (c *canvas) down(class string, x float64, from int, dashes string) {
	b := &c.over
	if class == "grid" {
		b = &c.under
	}
	fmt.Fprintf(b, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke-dasharray="%s"/>`+"\n",
		class, x, from, x, c.y, dashes)
}

func (c *canvas) text(class string, x, y float64, anchor, text string) {
	fmt.Fprintf(&c.over, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
		class, x, y, anchor, text)
}

func (c *canvas) box(colour string, x, y, width, height float64) {
	fmt.Fprintf(&c.over, `<rect class="f%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n",
		colour, x, y, width, height)
}

// niceAbove is the next number that has, as its half, few digits.
func niceAbove(v float64) float64 {
	for unit := math.Pow(10, math.Floor(math.Log10(v))); ; unit *= 10 {
		for _, step := range []float64{1, 1.2, 1.6, 2, 4, 6, 8} {
			if n := math.Round(step * unit); n >= v && n > 1 {
				return n
			}
		}
	}
}
