package main

import (
	"regexp"
	"strings"
)

// forbidden is what no file may contain. The patterns are written so that they do not match themselves.
var forbidden = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{
		regexp.MustCompile(`(^|[^A-Za-z0-9_.\-*}])/(?:work|root|Users|home/[a-z]+)/`),
		"names a folder of somebody's machine",
	},
	{
		regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME)\b`),
		"names unfinished work; finish it, or open an issue",
	},
}

// checkWords reports forbidden words in every text file but those that others have written.
func checkWords(files *tree) []problem {
	var found []problem
	for _, name := range files.paths() {
		if name == "LICENSE" || strings.HasSuffix(name, "go.sum") {
			continue
		}
		n := 0
		for line := range strings.Lines(files.texts[name]) {
			n++
			for _, f := range forbidden {
				if m := f.pattern.FindString(line); m != "" {
					found = append(found, problem{name, n, strings.TrimSpace(m) + " " + f.why})
				}
			}
		}
	}
	return found
}
