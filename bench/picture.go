package main

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/stats"
)

// The measures of the picture, in pixels.
const (
	panelWidth  = 440
	panelTop    = 44 // of a panel, above its bars
	panelBottom = 18
	barHeight   = 16
	barPitch    = 24
	labelWidth  = 92
	valueWidth  = 78
	margin      = 20
	perLine     = 2 // panels
)

// picture draws the columns that have a panel, as bars, in SVG.
func picture(rows []compare.Row) string {
	var panels []string
	height := panelTop + len(rows)*barPitch + panelBottom
	all := append(costs(), ends()...)
	for i := range all {
		if all[i].panel == "" {
			continue
		}
		n := len(panels)
		panels = append(panels, panel(rows, &all[i], margin+n%perLine*(panelWidth+margin), margin+n/perLine*height))
	}
	width := margin + perLine*(panelWidth+margin)
	tall := 2*margin + (len(panels)+perLine-1)/perLine*height
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`font-family="system-ui, sans-serif" font-size="13">`+"\n", width, tall, width, tall)
	b.WriteString("<title>Engines compared</title>\n<desc>Bars for what the tables of comparison.md say; shorter is better.</desc>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, tall)
	b.WriteString(strings.Join(panels, ""))
	b.WriteString("</svg>\n")
	return b.String()
}

// panel draws one column. Costs are on a logarithmic scale, because they differ by orders of magnitude; times until a lock
// is free are not.
func panel(rows []compare.Row, c *column, x, y int) string {
	scale := "logarithmic"
	if c.ranged {
		scale = "linear"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", x, y)
	fmt.Fprintf(&b, `<text x="0" y="16" font-weight="600" fill="#1f2933">%s</text>`+"\n", html.EscapeString(c.panel))
	fmt.Fprintf(&b, `<text x="0" y="32" font-size="11" fill="#66727f">shorter is better, %s scale</text>`+"\n", scale)
	length := bars(rows, c)
	for i := range rows {
		top := panelTop + i*barPitch
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#1f2933">%s</text>`+"\n",
			labelWidth-8, top+13, html.EscapeString(rows[i].Label))
		cell := c.of(&rows[i])
		if len(cell.Values) == 0 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="11" fill="#66727f">%s</text>`+"\n",
				labelWidth, top+13, html.EscapeString(cell.Why))
			continue
		}
		v := stats.Median(cell.Values)
		w := length(v)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="#2f6f9f"/>`+"\n", labelWidth, top, w, barHeight)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#1f2933">%s</text>`+"\n", labelWidth+w+6, top+13, html.EscapeString(c.write(v)))
	}
	b.WriteString("</g>\n")
	return b.String()
}

// bars returns how long the bar of a value is.
func bars(rows []compare.Row, c *column) func(v float64) float64 {
	const room = panelWidth - labelWidth - valueWidth
	least, most := math.Inf(1), 0.0
	for i := range rows {
		if cell := c.of(&rows[i]); len(cell.Values) > 0 {
			v := max(stats.Median(cell.Values), 1)
			least, most = min(least, v), max(most, v)
		}
	}
	if c.ranged {
		return func(v float64) float64 { return max(1, room*v/most) }
	}
	low := math.Floor(math.Log10(least)) - 0.3 // so that the shortest is a bar too
	return func(v float64) float64 {
		return max(1, room*(math.Log10(max(v, 1))-low)/(math.Log10(most)-low))
	}
}
