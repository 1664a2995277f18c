package drivertest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/drivertest/internal/broken"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/writing-an-engine.md")

const (
	guide = "../docs/writing-an-engine.md"
	begin = "<!-- %s: begin; written by make golden -->\n"
	end   = "<!-- %s: end -->\n"
)

func TestTheGuideForEngines_NamesEachPromiseAndEachDefect(t *testing.T) {
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, table := range map[string]string{"promises": promiseTable(), "mistakes": mistakeTable()} {
		before, rest, found := strings.Cut(text, fmt.Sprintf(begin, name))
		got, after, ended := strings.Cut(rest, fmt.Sprintf(end, name))
		switch {
		case !found || !ended:
			t.Fatalf("%s has no place for the table of %s", guide, name)
		case *update:
			text = before + fmt.Sprintf(begin, name) + table + fmt.Sprintf(end, name) + after
		case got != table:
			t.Errorf("the table of %s in %s is not what the code says; make golden rewrites it. It should be:\n%s",
				name, guide, table)
		}
	}
	if *update {
		if err := os.WriteFile(guide, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func promiseTable() string {
	var b strings.Builder
	b.WriteString(
		"| promise | what it means | the contract, in package driver | asked only with |\n|---|---|---|---|\n")
	for _, p := range drivertest.PromiseRows() {
		contract := "`" + strings.ReplaceAll(p.Contract, ", ", "`, `") + "`"
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Promise, p.Means, contract, p.Needs)
	}
	return b.String()
}

func mistakeTable() string {
	var b strings.Builder
	b.WriteString("| mistake | promise that finds it |\n|---|---|\n")
	for _, d := range broken.All() {
		fmt.Fprintf(&b, "| %s | %s |\n", d.Name, d.Promise)
	}
	return b.String()
}
