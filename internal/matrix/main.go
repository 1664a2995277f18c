// Command matrix renders what the conformance suite found out about each engine as docs/evidence/engines.md.
//
//	matrix FOLDER >docs/evidence/engines.md
//
// FOLDER has the JSON files that package drivertest writes into INTERLOCK_RESULTS.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/drivertest"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: matrix FOLDER")
	}
	reports, err := load(args[0])
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, render(reports)); err != nil {
		return err
	}
	for _, r := range reports {
		if broken := r.Broken(); len(broken) > 0 {
			return fmt.Errorf("the engine %s breaks %q", r.Engine, broken)
		}
	}
	return nil
}

// load reads the reports of a folder, in the order of the engines' names.
func load(dir string) ([]*drivertest.Report, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no results: did the conformance suite run, with INTERLOCK_RESULTS set?")
	}
	var reports []*drivertest.Report
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := new(drivertest.Report)
		if err := json.Unmarshal(raw, r); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b *drivertest.Report) int { return strings.Compare(a.Engine, b.Engine) })
	return reports, nil
}
