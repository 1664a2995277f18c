package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/bench/stats"
)

// rounds are what benchfmt wrote, by scenario, peer and unit, so that pictures can be drawn again without measuring.
type rounds map[string]map[string]map[string][]float64

// written is the name of a line: the scenario, whose first letter is large, the peer, and GOMAXPROCS.
var written = regexp.MustCompile(`^Benchmark(.+)/peer=(.+)-\d+$`)

func readRounds(file string) (rounds, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := parseRounds(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

func parseRounds(text io.Reader) (rounds, error) {
	all := rounds{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "Benchmark") {
			continue
		}
		if err := all.add(strings.Fields(lines.Text())); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
	}
	return all, lines.Err()
}

// add reads a line: a name, how often, and pairs of a number and its unit.
func (r rounds) add(fields []string) error {
	name := written.FindStringSubmatch(fields[0])
	if name == nil || len(fields)%2 != 0 {
		return fmt.Errorf("this is no round")
	}
	scenario, peer := strings.ToLower(name[1][:1])+name[1][1:], name[2]
	if r[scenario] == nil {
		r[scenario] = map[string]map[string][]float64{}
	}
	if r[scenario][peer] == nil {
		r[scenario][peer] = map[string][]float64{}
	}
	units := r[scenario][peer]
	for i := 2; i < len(fields); i += 2 {
		x, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return err
		}
		units[fields[i+1]] = append(units[fields[i+1]], x)
	}
	return nil
}

// median is NaN for what was not measured, and for waits that did not end.
func (r rounds) median(scenario, peer, unit string) float64 {
	if u := r[scenario][peer]["unserved"]; len(u) > 0 && stats.Median(u) > 0 {
		return math.NaN()
	}
	return stats.Median(r[scenario][peer][unit])
}
