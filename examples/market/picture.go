package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/interlock-go/interlock/internal/svg"
)

// Sizes of the picture, in pixels.
const (
	pictureHeight = 320
	plotTop       = 40
	plotBottom    = 250
	plotLeft      = 60
	barWidth      = 26
	groupGap      = 40
)

// fills are the classes that colour the bars of each way.
var fills = map[string]string{byWatch: "fred", bySetnx: "forange", byOneLock: "fblue", byItem: "fgreen"}

const title = "Bought in a second, by sellers/buyers (logarithmic)"

// draw returns bars of what was bought in a second, a group for each crowd, on a logarithmic scale.
func draw(rows []row) []byte {
	top := 10.0
	for _, r := range rows {
		top = max(top, math.Pow(10, math.Ceil(math.Log10(max(r.perSecond(r.bought), 1)))))
	}
	var bars strings.Builder
	x, group := plotLeft+groupGap/2, plotLeft+groupGap/2
	for i, r := range rows {
		if i > 0 && r.crowd != rows[i-1].crowd {
			label(&bars, group, x, rows[i-1].crowd)
			x += groupGap
			group = x
		}
		y := height(r.perSecond(r.bought), top)
		fmt.Fprintf(&bars, `<rect class="%s" x="%d" y="%.1f" width="%d" height="%.1f"/>`+"\n",
			fills[r.way], x, y, barWidth-4, plotBottom-y)
		fmt.Fprintf(&bars, `<text class="ink" x="%d" y="%.1f" text-anchor="middle">%.0f</text>`+"\n",
			x+barWidth/2-2, y-4, r.perSecond(r.bought))
		x += barWidth
	}
	if len(rows) > 0 {
		label(&bars, group, x, rows[len(rows)-1].crowd)
	}
	width := max(x+groupGap/2, 480)
	var b strings.Builder
	b.WriteString(svg.Begin(title, width, pictureHeight, 10))
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="20" font-size="14">%s</text>`+"\n", plotLeft, title)
	for n := 1.0; n <= top; n *= 10 {
		y := height(n, top)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+
			`<text class="faint" x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n",
			plotLeft, y, width, y, plotLeft-6, y+3, n)
	}
	b.WriteString(bars.String())
	legend(&b, rows)
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// height is where a bar ends.
func height(n, top float64) float64 {
	return plotBottom - math.Log10(max(n, 1))/math.Log10(top)*(plotBottom-plotTop)
}

func label(b *strings.Builder, from, to int, c crowd) {
	fmt.Fprintf(b, `<text class="ink" x="%d" y="%d" text-anchor="middle" font-size="12">%v</text>`+"\n",
		(from+to)/2, plotBottom+18, c)
}

func legend(b *strings.Builder, rows []row) {
	x := plotLeft
	for _, name := range wayNames() {
		for _, r := range rows {
			if r.way != name {
				continue
			}
			fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="10" height="10"/>`+
				`<text class="ink" x="%d" y="%d" font-size="12">%s</text>`+"\n",
				fills[name], x, pictureHeight-30, x+15, pictureHeight-21, name)
			x += 40 + 7*len(name)
			break
		}
	}
}
