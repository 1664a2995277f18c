package main

import (
	"fmt"
	"os"
	"strings"
)

// What a run wrote stands between these lines.
const (
	beginMark = "<!-- measured: begin; written by GOWORK=off go run . -write -->\n"
	endMark   = "<!-- measured: end -->\n"
)

// marks are two lines of a file.
type marks struct{ begin, end string }

var (
	ofFiles = marks{beginMark, endMark}
	ofRedis = marks{
		"<!-- measured on Redis: begin; written by GOWORK=off go run . -scenario redis -write -->\n",
		"<!-- measured on Redis: end -->\n",
	}
	ofDistance = marks{
		"<!-- measured far away: begin; written by GOWORK=off go run . -scenario distance -write -->\n",
		"<!-- measured far away: end -->\n",
	}
	ofGrowth = marks{
		"<!-- measured growing: begin; written by GOWORK=off go run . -scenario growth -write -->\n",
		"<!-- measured growing: end -->\n",
	}
	ofEngines = marks{
		"<!-- measured on engines: begin; written by GOWORK=off go run . -scenario engines -write -->\n",
		"<!-- measured on engines: end -->\n",
	}
)

// write replaces what stands between the markers of the file.
func (m marks) write(file, tables string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := m.between(string(old), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// between returns text with what stands between the markers replaced.
func (m marks) between(text, tables string) (string, error) {
	before, rest, ok := strings.Cut(text, m.begin)
	if !ok {
		return "", fmt.Errorf("the line %q is missing", strings.TrimSpace(m.begin))
	}
	_, after, ok := strings.Cut(rest, m.end)
	if !ok {
		return "", fmt.Errorf("the line %q is missing", strings.TrimSpace(m.end))
	}
	return before + m.begin + "\n" + tables + "\n" + m.end + after, nil
}
