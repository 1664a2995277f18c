package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// rounds are measurements in the order in which they were made, as they stand in the files of baseline: in the format
// of Go's benchmarks, which benchstat reads.
type rounds []line

// line is one round of one peer.
type line struct {
	scenario, peer string
	values         []benchfmt.Value
}

// provenance is how rounds were measured: the command and the machine.
type provenance struct{ command, machine string }

// writeRounds writes the file of a run.
func writeRounds(path string, all rounds, from provenance) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var text strings.Builder
	if err := all.write(&text, from); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

func (r rounds) write(w io.Writer, from provenance) error {
	out := benchfmt.NewWriter(w)
	var config []benchfmt.Config
	for _, c := range [][2]string{
		{"command", from.command},
		{"machine", from.machine},
		{"goos", runtime.GOOS},
		{"goarch", runtime.GOARCH},
		{"pkg", "github.com/interlock-go/interlock/bench"},
	} {
		config = append(config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
	}
	for _, l := range r {
		name := fmt.Sprintf("%s%s/peer=%s-%d",
			strings.ToUpper(l.scenario[:1]), l.scenario[1:], l.peer, runtime.GOMAXPROCS(0))
		err := out.Write(&benchfmt.Result{Config: config, Name: benchfmt.Name(name), Iters: 1, Values: l.values})
		if err != nil {
			return err
		}
	}
	return nil
}

// readRounds reads what writeRounds wrote.
func readRounds(path string) (rounds, provenance, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, provenance{}, err
	}
	defer f.Close()
	return parseRounds(f, path)
}

func parseRounds(text io.Reader, name string) (all rounds, from provenance, err error) {
	in := benchfmt.NewReader(text, name)
	for in.Scan() {
		switch r := in.Result().(type) {
		case *benchfmt.Result:
			from = provenance{r.GetConfig("command"), r.GetConfig("machine")}
			l, err := lineOf(r)
			if err != nil {
				return nil, from, err
			}
			all = append(all, l)
		case *benchfmt.SyntaxError:
			return nil, from, r
		}
	}
	return all, from, in.Err()
}

// lineOf undoes the format: a large first letter, the peer, GOMAXPROCS, and units that the reader has scaled.
func lineOf(r *benchfmt.Result) (line, error) {
	full := r.Name.String()
	name, rest, found := strings.Cut(full, "/peer=")
	end := strings.LastIndexByte(rest, '-')
	if !found || end < 0 {
		return line{}, fmt.Errorf("%s is no round of a peer", full)
	}
	l := line{scenario: strings.ToLower(name[:1]) + name[1:], peer: rest[:end]}
	for _, v := range r.Values {
		if v.OrigUnit != "" {
			v = benchfmt.Value{Value: v.OrigValue, Unit: v.OrigUnit}
		}
		l.values = append(l.values, v)
	}
	return l, nil
}

// each returns one number of each round of a peer.
func (r rounds) each(scenario, peer, unit string) (xs []float64) {
	for _, l := range r {
		if l.scenario != scenario || l.peer != peer {
			continue
		}
		for _, v := range l.values {
			if v.Unit == unit {
				xs = append(xs, v.Value)
			}
		}
	}
	return xs
}

// median is NaN for what was not measured.
func (r rounds) median(scenario, peer, unit string) float64 {
	return center(r.each(scenario, peer, unit))
}

// center is the median. It leaves the order alone, in which rounds are paired.
func center(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sample := benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds)
	const confidence = 0.95 // of an interval that nobody asks for
	return benchmath.AssumeNothing.Summary(sample, confidence).Center
}

// cut reports whether a time is only the limit: not all were served within it.
func (r rounds) cut(scenario, peer, unit string) bool {
	return (unit == perHerd || unit == perGrant) && r.median(scenario, peer, unserved) > 0
}

// ratio is that of the medians of two peers, with the smallest and the largest ratio of two measurements of one round.
type ratio struct{ of, least, most float64 }

func (r rounds) ratio(scenario, peer, base, unit string) ratio {
	a, b := r.each(scenario, peer, unit), r.each(scenario, base, unit)
	q := ratio{center(a) / center(b), math.NaN(), math.NaN()}
	for i := range min(len(a), len(b)) {
		x := a[i] / b[i]
		if i == 0 {
			q.least, q.most = x, x
		}
		q.least, q.most = min(q.least, x), max(q.most, x)
	}
	return q
}
