package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/interlock-go/interlock/internal/svg"
)

// Sizes of the picture, in pixels.
const (
	panelWidth, panelHeight = 300, 300
	panelTop, panelBottom   = 60, 230
	panelLeft, panelRight   = 45, 285
	legendBelow             = 22 // between the legend and the bottom
)

// colours are those of the lines: what redislock does, and the control. With an f before it each is a fill.
var colours = [2]string{"blue", "red"}

// panel is one diagram: a number of each crowd, on logarithmic scales.
type panel struct {
	title       string
	number      func(crowdCost) float64
	least, most float64 // of the scale; powers of ten
	label       func(float64) string
}

var panels = []panel{
	{"median time to grant", func(c crowdCost) float64 { return c.median.Seconds() }, 0.01, 100, duration},
	{"messages for each grant", func(c crowdCost) float64 { return c.messages }, 1, 100, plain},
	{"server busy", func(c crowdCost) float64 { return c.serverBusy }, 0.001, 1, percent},
}

func duration(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3g ms", 1000*seconds)
	}
	return fmt.Sprintf("%.3g s", seconds)
}

func plain(x float64) string   { return fmt.Sprintf("%.3g", x) }
func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }

// drawCrowds returns the panels side by side, with a line for each of the two.
func drawCrowds(paced, steady []crowdCost) []byte {
	var b strings.Builder
	width := panelWidth * len(panels)
	b.WriteString(svg.Begin("What waiting for one lock costs among 10 to 10,000 clients", width, panelHeight, 10))
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="20" font-size="14">Clients that all want one lock (simulated; both `+
		`scales are logarithmic)</text>`+"\n", panelLeft)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d 0)">`+"\n", i*panelWidth)
		p.frame(&b, paced)
		p.line(&b, steady, colours[1], -6)
		p.line(&b, paced, colours[0], 14)
		b.WriteString("</g>\n")
	}
	for i, name := range []string{ofRedislock.name, eachSecond.name} {
		x, y := panelLeft+200*i, panelHeight-legendBelow
		fmt.Fprintf(&b, `<rect class="f%s" x="%d" y="%d" width="12" height="4"/>`+
			`<text class="ink" x="%d" y="%d">%s</text>`+"\n", colours[i], x, y, x+18, y+6, name)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// frame draws the title and the scales.
func (p *panel) frame(b *strings.Builder, costs []crowdCost) {
	fmt.Fprintf(b, `<text class="ink" x="%d" y="%d" font-size="12">%s</text>`+"\n", panelLeft, panelTop-16, p.title)
	for x := p.least; x <= p.most*1.01; x *= 10 {
		y := p.y(x)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text class="faint" x="%d" y="%.1f" `+
			`text-anchor="end">%s</text>`+"\n", panelLeft, y, panelRight, y, panelLeft-4, y+3, p.label(x))
	}
	for n := 10; n <= costs[len(costs)-1].clients; n *= 10 {
		fmt.Fprintf(b, `<text class="faint" x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
			across(n, costs), panelBottom+16, n)
	}
}

// line draws the numbers, and writes the last one beside its point.
func (p *panel) line(b *strings.Builder, costs []crowdCost, colour string, beside float64) {
	var points []string
	for _, c := range costs {
		points = append(points, fmt.Sprintf("%.1f,%.1f", across(c.clients, costs), p.y(p.number(c))))
	}
	fmt.Fprintf(b, `<polyline class="line %s" points="%s"/>`+"\n", colour, strings.Join(points, " "))
	last := costs[len(costs)-1]
	fmt.Fprintf(b, `<text class="f%s" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
		colour, panelRight, p.y(p.number(last))+beside, p.label(p.number(last)))
}

// across is where a crowd of n stands from left to right.
func across(n int, costs []crowdCost) float64 {
	first, last := costs[0].clients, costs[len(costs)-1].clients
	return panelLeft + 5 + (panelRight-panelLeft-15)*part(float64(n), float64(first), float64(last))
}

// y is how high a number stands.
func (p *panel) y(x float64) float64 {
	return panelBottom - (panelBottom-panelTop)*part(max(x, p.least), p.least, p.most)
}

// part is where x stands between two bounds on a logarithmic scale, from 0 to 1.
func part(x, least, most float64) float64 { return math.Log(x/least) / math.Log(most/least) }
