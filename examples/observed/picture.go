package main

import (
	"fmt"
	"math"
	"strings"
	"time"
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

// look has the colours, for light pages and for dark ones.
const look = `<style>
.bg{fill:#fff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d8dee4}.mark{stroke:#818b98}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.limit{stroke:#c0392b}
.blue{stroke:#2471a3}.orange{stroke:#bf6a02}.red{stroke:#c0392b}
.fblue{fill:#2471a3}.forange{fill:#bf6a02}.fred{fill:#c0392b}.fgreen{fill:#2c974b}
.fpending{fill:#f5d9a8;stroke:#bf6a02}
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#30363d}.mark{stroke:#6e7681}
.limit{stroke:#ff7b72}.blue{stroke:#6cb6ff}.orange{stroke:#e3a04a}.red{stroke:#ff7b72}
.fblue{fill:#6cb6ff}.forange{fill:#e3a04a}.fred{fill:#ff7b72}.fgreen{fill:#57ab5a}
.fpending{fill:#4d3a1a;stroke:#e3a04a}}
</style>
`

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
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`font-family="sans-serif" font-size="11">`+"\n", pictureWidth, height, pictureWidth, height)
	b.WriteString("<title>What Prometheus saw: trades, waits, renewals, losses and alerts over time</title>\n")
	b.WriteString(look)
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d"/>`+"\n", pictureWidth, height)
	b.WriteString(`<text class="ink" x="16" y="24" font-size="15">What Prometheus saw of a link that was cut, and of a holder that stood still</text>` + "\n")
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
		fmt.Fprintf(&c.under, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, plotLeft, at(v), plotRight, at(v))
		fmt.Fprintf(&c.under, `<text class="faint" x="%d" y="%.1f" text-anchor="end">%v</text>`+"\n", plotLeft-6, at(v)+4, v)
	}
	fmt.Fprintf(&c.over, `<text class="ink" x="16" y="%.1f" font-size="12">%s</text>`+"\n", top+9, p.title)
	if p.limit > 0 {
		fmt.Fprintf(&c.over, `<line class="limit" x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke-dasharray="5 4"/>`, plotLeft, at(p.limit),
			plotRight, at(p.limit))
		fmt.Fprintf(&c.over, `<text class="fred" x="16" y="%.1f">alert above %v</text>`+"\n", top+28, p.limit)
	}
	for i, l := range p.lines {
		c.line(l, at, p.steps)
		if l.name != "" {
			fmt.Fprintf(&c.over, `<text class="f%s" x="16" y="%.1f">%s</text>`+"\n", l.colour, top+28+float64(i)*16, l.name)
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
	fmt.Fprintf(&c.under, `<line class="grid" x1="%d" y1="%d" x2="%d" y2="%d"/>`, plotLeft, c.y+bandHeight/2, plotRight, c.y+bandHeight/2)
	fmt.Fprintf(&c.over, `<text class="ink" x="16" y="%d">%s</text>`, c.y+bandHeight-2, b.name)
	for _, s := range b.spans {
		fmt.Fprintf(&c.over, `<rect class="f%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, s.colour, c.x(s.from), c.y,
			c.x(s.to)-c.x(s.from), bandHeight)
	}
	c.over.WriteString("\n")
	c.y += bandStep
}

// axis draws the seconds.
func (c *canvas) axis() {
	for t := time.Duration(0); t <= c.to.Sub(c.from); t += 5 * time.Second {
		x := c.x(c.from.Add(t))
		fmt.Fprintf(&c.under, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, headHeight, x, c.y)
		if t%(10*time.Second) == 0 {
			fmt.Fprintf(&c.under, `<text class="faint" x="%.1f" y="%d" text-anchor="middle">%v s</text>`+"\n", x, c.y+16, t.Seconds())
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
		fmt.Fprintf(&c.over, `<line class="mark" x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke-dasharray="2 3"/>`, x, headHeight-8, x, c.y)
		fmt.Fprintf(&c.over, `<text class="ink" x="%.1f" y="%d" text-anchor="%s">%s</text>`+"\n", x+shift, headHeight-14, anchor, m.text)
	}
}

// legend says what the colours of alerts are.
func (c *canvas) legend(height int) {
	y := height - 14
	fmt.Fprintf(&c.over, `<rect class="fpending" x="%d" y="%d" width="18" height="10"/><text class="faint" x="%d" y="%d">alert pending</text>`,
		plotLeft, y-9, plotLeft+24, y)
	fmt.Fprintf(&c.over, `<rect class="fred" x="%d" y="%d" width="18" height="10"/><text class="faint" x="%d" y="%d">alert fires</text>`,
		plotLeft+120, y-9, plotLeft+144, y)
	fmt.Fprintf(&c.over, `<text class="faint" x="%d" y="%d" text-anchor="end">a lease is %.0f s; a second for each minute of the rules</text>`+"\n",
		plotRight, y, lease.Seconds())
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
