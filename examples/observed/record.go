package main

import (
	"context"
	"slices"
	"time"
)

// record is what Prometheus knows of a run.
type record struct {
	from, to time.Time
	marks    []mark
	panels   []panel
	bands    []band
}

// panel is one diagram.
type panel struct {
	title string
	limit float64 // of an alert; 0 is none
	steps bool    // of what changes at once
	lines []line
}

// line is one expression over time.
type line struct {
	name, colour, expr string
	points             []point
}

// band shows when something was so.
type band struct {
	name  string
	spans []span
	below bool // a gap comes before it
}

type span struct {
	from, to time.Time
	colour   string
}

// lastOf is the sum of counters as they were seen last: a scrape that failed does not take away what was counted.
func lastOf(counters string) string { return "sum(last_over_time(" + counters + "[1m]))" }

// panels are those of the picture. A waiter in a process that is not scraped is not seen.
func panels() []panel {
	return []panel{
		{title: "trades in a second", lines: []line{
			{name: "", colour: "blue", expr: `sum(rate(interlock_hold_duration_seconds_count{class="market"}[3s]))`},
		}},
		{title: "calls that wait", limit: 20, lines: []line{
			{name: "", colour: "orange", expr: `sum(interlock_waiting{class="market"})`},
		}},
		{title: "counted so far", steps: true, lines: []line{
			{name: "renewals failed", colour: "orange", expr: lastOf(`interlock_renewals_total{result="failed"}`)},
			{name: "renewals late", colour: "blue", expr: lastOf(`interlock_renewals_total{result="late"}`)},
			{name: "locks lost", colour: "red", expr: lastOf(`interlock_lost_total`)},
		}},
	}
}

// states are what was so or not. That the market's lock is held is not among them: it is, for a millisecond at a time,
// which few scrapes see; and the one who held it for long could not be scraped.
var states = []struct{ name, expr string }{
	{"ledger held", `max(interlock_held{class="ledger"}) > 0`},
	{shopName(0) + " scraped", `up{process="` + shopName(0) + `"} == 1`},
}

// record asks for everything.
func (s *show) record(ctx context.Context) (*record, error) {
	r := &record{from: s.begin, to: time.Now(), marks: s.marks, panels: panels()}
	for _, p := range r.panels {
		for i := range p.lines {
			found, err := s.prom.history(ctx, p.lines[i].expr, r.from, r.to)
			if err != nil {
				return nil, err
			}
			for _, f := range found { // a sum is one, or none
				p.lines[i].points = f.points
			}
		}
	}
	for _, state := range states {
		found, err := s.prom.history(ctx, state.expr, r.from, r.to)
		if err != nil {
			return nil, err
		}
		b := band{name: state.name}
		for _, f := range found {
			b.add(f, "green")
		}
		r.bands = append(r.bands, b)
	}
	return r, s.recordAlerts(ctx, r)
}

// recordAlerts adds a band for each alert that was pending or fired, in the order in which they fired.
func (s *show) recordAlerts(ctx context.Context, r *record) error {
	found, err := s.prom.history(ctx, "ALERTS", r.from, r.to)
	if err != nil {
		return err
	}
	var bands []band
	for _, f := range found {
		name := f.labels["alertname"]
		i := slices.IndexFunc(bands, func(b band) bool { return b.name == name })
		if i < 0 {
			i = len(bands)
			bands = append(bands, band{name: name})
		}
		bands[i].add(f, map[string]string{"pending": "pending", "firing": "red"}[f.labels["alertstate"]])
	}
	slices.SortFunc(bands, func(a, b band) int { return a.first().Compare(b.first()) })
	if len(bands) > 0 {
		bands[0].below = true
	}
	r.bands = append(r.bands, bands...)
	return nil
}

// add adds a span for each run of points without a gap.
func (b *band) add(s series, colour string) {
	for _, p := range s.points {
		end := p.at.Add(scrapes)
		if last := len(b.spans) - 1; last >= 0 && b.spans[last].colour == colour && !p.at.After(b.spans[last].to) {
			b.spans[last].to = end
			continue
		}
		b.spans = append(b.spans, span{p.at, end, colour})
	}
}

// first is when the alert of the band fired first. One that was only pending comes after those that were not.
func (b *band) first() (first time.Time) {
	for _, s := range b.spans {
		if s.colour == "red" && (first.IsZero() || s.from.Before(first)) {
			first = s.from
		}
	}
	if first.IsZero() {
		return b.spans[0].from.AddDate(1, 0, 0)
	}
	return first
}
