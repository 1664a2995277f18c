package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// pictureFolder is where the pictures of README.md are.
const pictureFolder = "pictures"

// drawing is a picture of what one run has measured.
type drawing struct {
	file  string
	from  string // where the rounds are
	title string
	of    func(r rounds) []panel
}

func drawings() []drawing {
	return []drawing{
		{"contention.svg", redisBaseline, "Contention on Redis", contentionPanels},
		{"handoff.svg", redisBaseline, "Hand-off on Redis", handoffPanels},
		{"distance.svg", distanceBaseline, "Redis far away", distancePanels},
		{"growth.svg", growthBaseline, "Growth on Redis", growthPanels},
	}
}

// draw draws the pictures of which there are rounds in the folder, and returns their files. Without a file of rounds it draws all.
func draw(folder, only string) (drawn []string, err error) {
	for _, d := range drawings() {
		if only != "" && d.from != only {
			continue
		}
		r, err := readRounds(filepath.Join(folder, d.from))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return drawn, err
		}
		panels := d.of(r)
		if len(panels) == 0 {
			continue
		}
		file := filepath.Join(folder, pictureFolder, d.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return drawn, err
		}
		if err := os.WriteFile(file, []byte(svg(d.title, panels)), 0o644); err != nil {
			return drawn, err
		}
		drawn = append(drawn, file)
	}
	return drawn, nil
}

// shown are the links to the pictures of a run, for its tables.
func shown(from string) string {
	var text string
	for _, d := range drawings() {
		if d.from == from {
			text += fmt.Sprintf("![%s](%s/%s)\n\n", d.title, pictureFolder, d.file)
		}
	}
	return text
}

// barChart is one panel: a number of each peer of a scenario.
type barChart struct {
	scenario, unit string
	title, better  string
	write          func(float64) string
}

func contentionPanels(r rounds) []panel {
	var charts []barChart
	for _, c := range []struct{ scenario, who string }{
		{"redis-one-process/16", "16 goroutines of one process"},
		{"redis-one-process/256", "256 goroutines of one process"},
		{"redis-processes/8x1", "8 processes"},
		{"redis-processes/8x16", "8 processes x 16 goroutines"},
	} {
		charts = append(charts, barChart{c.scenario, "locks/s", "One key, locks a second: " + c.who, "longer is better", thousands})
	}
	return r.bars(charts)
}

func handoffPanels(r rounds) []panel {
	const scenario, better = "redis-handoff", "shorter is better"
	return r.bars([]barChart{
		{scenario, "p50-ns", "Unlock in one process to Lock in the next, p50", better, duration},
		{scenario, "p99-ns", "The same, p99", better, duration},
		{scenario, "waiting-commands/s", "Commands a second while one waits", better, few},
		{"redis-herd", "ns/herd", fmt.Sprintf("%d waiting clients, all served after", herdOf), better, duration},
	})
}

// bars draws those charts of which there are rounds, with the peers in the order of the tables.
func (r rounds) bars(charts []barChart) []panel {
	var panels []panel
	for _, c := range charts {
		var bars []bar
		for _, p := range peersOf(c.scenario) {
			if _, is := r[c.scenario][p]; is {
				v := r.median(c.scenario, p, c.unit)
				bars = append(bars, bar{label: p, value: v, text: c.write(v), why: "not all were served"})
			}
		}
		if len(bars) > 0 {
			panels = append(panels, barPanel(c.title, c.better+", logarithmic scale", bars, peerWidth, false))
		}
	}
	return panels
}

// peersOf are those of a scenario, in the order of its table.
func peersOf(name string) []string {
	for _, sc := range allScenarios() {
		if sc.name == name {
			return sc.peers
		}
	}
	return nil
}

// lineChart is one panel: a number of each peer by the points of a family.
type lineChart struct {
	family, unit string
	title, below string
	xs           []float64
	write        func(float64) string
}

func distancePanels(r rounds) []panel {
	const below = "by what a round trip to the server takes; less is better, both scales logarithmic"
	var xs []float64
	for _, d := range distances {
		xs = append(xs, float64(d))
	}
	return r.lines([]lineChart{
		{onDistance + "-alone", "round-trips", "Acquire and release, in round trips", below, xs, few},
		{onDistance + "-handoff", "round-trips", "Hand-off between two processes, p50, in round trips", below, xs, few},
	})
}

func growthPanels(r rounds) []panel {
	const below, better = "by locks held at once", "; less is better, both scales logarithmic"
	return r.lines([]lineChart{
		{
			onGrowth + "-holds", "cpu-share", "Renewing held locks: the client's part of a processor", below + better,
			floats(growthLocks), percent,
		},
		{onGrowth + "-holds", "commands/s", "Renewing held locks: commands a second", below + better, floats(growthLocks), few},
		{
			onGrowth + "-waiters", "ns/grant", "Time for each waiter", "by goroutines that wait for one key" + better,
			floats(growthWaiters), duration,
		},
	})
}

func floats(ns []int) []float64 {
	xs := make([]float64, len(ns))
	for i, n := range ns {
		xs[i] = float64(n)
	}
	return xs
}

// lines draws those charts of which there are rounds.
func (r rounds) lines(charts []lineChart) []panel {
	var panels []panel
	for _, c := range charts {
		var family []scenario
		for _, sc := range allScenarios() {
			if sc.family == c.family {
				family = append(family, sc)
			}
		}
		if lines, names := r.ofFamily(family, c.unit); len(lines) > 0 {
			panels = append(panels, linePanel(c.title, c.below, c.xs, names, lines, c.write))
		}
	}
	return panels
}

// ofFamily returns the lines of the peers of a family, and the names of its points.
func (r rounds) ofFamily(family []scenario, unit string) (lines []curve, names []string) {
	var peers []string
	for _, sc := range family {
		names = append(names, sc.point)
		for _, p := range sc.peers {
			if _, is := r[sc.name][p]; is && !slices.Contains(peers, p) {
				peers = append(peers, p)
			}
		}
	}
	for _, p := range peers {
		l := curve{label: p}
		for _, sc := range family {
			l.values = append(l.values, r.median(sc.name, p, unit))
		}
		lines = append(lines, l)
	}
	return lines, names
}
