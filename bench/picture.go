package main

import (
	"math"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/stats"
)

// picture draws the columns of the comparison that have a panel, as bars.
func picture(rows []compare.Row) string {
	var panels []panel
	for _, c := range append(costs(), ends()...) {
		if c.panel == "" {
			continue
		}
		kind := "logarithmic"
		if c.ranged {
			kind = "linear"
		}
		panels = append(panels, barPanel(c.panel, "shorter is better, "+kind+" scale", engineBars(rows, &c), engineWidth, c.ranged))
	}
	return svg("Engines compared", panels)
}

func engineBars(rows []compare.Row, c *column) []bar {
	var bars []bar
	for i := range rows {
		cell := c.of(&rows[i])
		b := bar{label: rows[i].Label, value: math.NaN(), why: cell.Why}
		if len(cell.Values) > 0 {
			b.value = stats.Median(cell.Values)
			b.text = c.write(b.value)
		}
		bars = append(bars, b)
	}
	return bars
}
