package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The measures of pictures, in pixels.
const (
	panelWidth  = 440
	panelTop    = 44 // of a panel, above its bars
	panelBottom = 18
	barHeight   = 16
	barPitch    = 24
	engineWidth = 92 // of the labels
	peerWidth   = 132
	valueWidth  = 78
	margin      = 20
	perLine     = 2 // panels

	chartHeight = 300
	chartLeft   = 60 // of the area of lines
	chartRight  = 175
	chartTop    = 48
	chartBottom = 28
)

// svg puts panels beside and below each other.
func svg(title string, panels []panel) string {
	height := 0
	for _, p := range panels {
		height = max(height, p.height)
	}
	width := margin + perLine*(panelWidth+margin)
	tall := 2*margin + (len(panels)+perLine-1)/perLine*height
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`font-family="system-ui, sans-serif" font-size="13">`+"\n", width, tall, width, tall)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>What the tables say.</desc>\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, tall)
	for n, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n%s</g>\n",
			margin+n%perLine*(panelWidth+margin), margin+n/perLine*height, p.body)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panel is a part of a picture.
type panel struct {
	height int
	body   string
}

func heading(title, below string) string {
	return fmt.Sprintf(`<text x="0" y="16" font-weight="600" fill="#1f2933">%s</text>`+"\n"+
		`<text x="0" y="32" font-size="11" fill="#66727f">%s</text>`+"\n", html.EscapeString(title), html.EscapeString(below))
}

// bar is a number with its name; NaN is none, and why says why.
type bar struct {
	label string
	value float64
	text  string
	why   string
}

// barPanel draws bars, with so much room for their labels.
func barPanel(title, below string, bars []bar, labels int, linear bool) panel {
	var b strings.Builder
	b.WriteString(heading(title, below))
	length := scale(bars, float64(panelWidth-labels-valueWidth), linear)
	for i, r := range bars {
		top := panelTop + i*barPitch
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#1f2933">%s</text>`+"\n", labels-8, top+13, html.EscapeString(r.label))
		if math.IsNaN(r.value) {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="11" fill="#66727f">%s</text>`+"\n", labels, top+13, html.EscapeString(r.why))
			continue
		}
		w := length(r.value)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`+"\n", labels, top, w, barHeight, colour(r.label))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#1f2933">%s</text>`+"\n", float64(labels)+w+6, top+13, html.EscapeString(r.text))
	}
	return panel{panelTop + len(bars)*barPitch + panelBottom, b.String()}
}

// scale returns how long the bar of a value is.
func scale(bars []bar, room float64, linear bool) func(v float64) float64 {
	least, most := math.Inf(1), 0.0
	for _, r := range bars {
		if !math.IsNaN(r.value) {
			least, most = min(least, max(r.value, 1)), max(most, r.value, 1)
		}
	}
	if linear {
		return func(v float64) float64 { return max(1, room*v/most) }
	}
	low := math.Floor(math.Log10(least)) - 0.3 // so that the shortest is a bar too
	return func(v float64) float64 {
		if v <= 0 {
			return 1
		}
		return max(1, room*(math.Log10(max(v, 1))-low)/(math.Log10(most)-low))
	}
}

// colour is interlock's own, or that of others.
func colour(label string) string {
	if strings.HasPrefix(label, "interlock") {
		return "#c2571a"
	}
	return "#2f6f9f"
}

// curve is one peer's way through a lineChart: a value for each x, NaN where there is none.
type curve struct {
	label  string
	values []float64
}

// colours are of lines, in turn.
var colours = []string{"#c2571a", "#2f6f9f", "#3f8f5f", "#8a5fa8", "#7a6a4f", "#9a3f5f"}

// linePanel draws lines through the points at xs, both scales logarithmic. write says what stands at the end of each line.
func linePanel(title, below string, xs []float64, names []string, lines []curve, write func(float64) string) panel {
	var b strings.Builder
	b.WriteString(heading(title, below))
	var all []float64
	for _, l := range lines {
		all = append(all, l.values...)
	}
	all = slices.DeleteFunc(all, func(v float64) bool { return !(v > 0) })
	if len(all) == 0 {
		return panel{chartHeight, b.String()}
	}
	const bottom = chartHeight - chartBottom - panelBottom
	across := between(slices.Min(xs), slices.Max(xs), chartLeft, panelWidth-chartRight)
	up := between(slices.Min(all), slices.Max(all), bottom, chartTop)
	for i, x := range xs {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e3e7eb"/>`+"\n", across(x), chartTop, across(x), bottom)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" font-size="11" fill="#66727f">%s</text>`+"\n",
			across(x), bottom+18, html.EscapeString(names[i]))
	}
	for _, v := range []float64{slices.Min(all), slices.Max(all)} {
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end" font-size="11" fill="#66727f">%s</text>`+"\n",
			chartLeft-8, up(v)+4, html.EscapeString(write(v)))
	}
	free := apart(lines, up)
	for i, l := range lines {
		b.WriteString(l.draw(xs, across, up, free[i], colours[i%len(colours)], write))
	}
	return panel{chartHeight, b.String()}
}

// between returns where a value is on a logarithmic scale.
func between(least, most, from, to float64) func(v float64) float64 {
	if most <= least {
		return func(float64) float64 { return (from + to) / 2 }
	}
	return func(v float64) float64 { return from + (to-from)*math.Log(v/least)/math.Log(most/least) }
}

// last is where a line ends.
func (l *curve) last() (i int, v float64) {
	for i := len(l.values) - 1; i >= 0; i-- {
		if l.values[i] > 0 {
			return i, l.values[i]
		}
	}
	return -1, math.NaN()
}

// apart returns how high the label of each line stands, so that none is on another one.
func apart(lines []curve, up func(float64) float64) []float64 {
	const pitch = 15
	at := make([]float64, len(lines))
	var order []int
	for i := range lines {
		if n, v := lines[i].last(); n >= 0 {
			at[i] = up(v)
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if at[a] < at[b] {
			return -1
		}
		return 1
	})
	for k := 1; k < len(order); k++ {
		at[order[k]] = max(at[order[k]], at[order[k-1]]+pitch)
	}
	for k, lowest := len(order)-1, float64(chartHeight-chartBottom-panelBottom); k >= 0; k-- { // back into the area
		at[order[k]] = min(at[order[k]], lowest)
		lowest = at[order[k]] - pitch
	}
	return at
}

func (l *curve) draw(xs []float64, across, up func(float64) float64, label float64, colour string, write func(float64) string) string {
	var b strings.Builder
	var path []string
	for i, v := range l.values {
		if v > 0 {
			path = append(path, fmt.Sprintf("%.1f,%.1f", across(xs[i]), up(v)))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", across(xs[i]), up(v), colour)
		}
	}
	if len(path) == 0 {
		return ""
	}
	fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colour)
	_, end := l.last()
	fmt.Fprintf(&b, `<text x="%d" y="%.1f" font-size="12" fill="%s">%s</text>`+"\n",
		panelWidth-chartRight+10, label+4, colour, html.EscapeString(l.label+", "+write(end)))
	return b.String()
}
