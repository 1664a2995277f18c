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

// writeBetweenMarkers replaces what stands between the markers of the file.
func writeBetweenMarkers(file, tables string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := between(string(old), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// between returns text with what stands between the markers replaced.
func between(text, tables string) (string, error) {
	before, rest, ok := strings.Cut(text, beginMark)
	if !ok {
		return "", fmt.Errorf("the line %q is missing", strings.TrimSpace(beginMark))
	}
	_, after, ok := strings.Cut(rest, endMark)
	if !ok {
		return "", fmt.Errorf("the line %q is missing", strings.TrimSpace(endMark))
	}
	return before + beginMark + "\n" + tables + "\n" + endMark + after, nil
}
