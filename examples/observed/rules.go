package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// alertFile is where the rules are in the repository.
const alertFile = "deploy/alerts.yaml"

// readRules returns the rules in the file at path, or else those of the repository that the working folder is in.
func readRules(path string) (string, error) {
	if path != "" {
		text, err := os.ReadFile(path)
		return string(text), err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, alertFile))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return string(text), err
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("no %s in this folder or one above it: name the file by -rules", alertFile)
		}
		dir = filepath.Dir(dir)
	}
}

// minutes are those that say how long something must be seen.
var minutes = regexp.MustCompile(`(\[|\bfor: |\boffset )(\d+)m\b`)

// hasten makes a second of each minute in the rules. Nothing else about them changes.
func hasten(rules string) string { return minutes.ReplaceAllString(rules, "${1}${2}s") }

// scrapes is how often Prometheus scrapes and looks at the rules. Its default is a minute, so this is too.
const scrapes = time.Second

// configuration is Prometheus' own, with the addresses of those to scrape, each under the name of its process.
func configuration(targets map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %[1]v, scrape_timeout: %[1]v, evaluation_interval: %[1]v}\n", scrapes)
	b.WriteString("rule_files: [alerts.yaml]\nscrape_configs:\n  - job_name: market\n    static_configs:\n")
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {process: %q}}\n", targets[name], name)
	}
	return b.String()
}
