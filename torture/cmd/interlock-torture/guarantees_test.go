package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// What a cell says is its command makes the same run, and the rule at the top of the page says the same.
func TestCommands_MakeTheRunsOfCellsAgain(t *testing.T) {
	cells, err := t2Cells("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		c.Processes, c.Goroutines, c.Names, c.Duration, c.Cancel, c.Seed = 4, 2, 3, 10*time.Second, 0.05, 7
	}
	for _, c := range cells {
		args := strings.Fields(c.command())
		if got := strings.Join(args[:3], " "); got != "interlock torture run" {
			t.Fatalf("the command is %q", got)
		}
		got, err := parseRun(args[3:])
		if err != nil {
			t.Errorf("%s: %v", c.command(), err)
			continue
		}
		if got.Target.Name != c.Target.Name {
			t.Errorf("%s is of %s", c.command(), got.Target.Name)
		}
		got.Target = c.Target
		if !reflect.DeepEqual(got, c.Config) {
			t.Errorf("%s makes\n%+v, want\n%+v", c.command(), got, c.Config)
		}
	}
	if rule, want := again(
		cells), "-faults FAULT -workers 4x2 -names 3 -duration 10s -hold HOLD -seed 7`"; !strings.Contains(rule, want) {
		t.Errorf("%q is not in %q", want, rule)
	}
}

// The page has each kind of fault with what it hit, what none of so many proves, and deaths alone
// and beside other faults.
func TestGuarantees_SayWhatWasDoneAndWhatThatProves(t *testing.T) {
	made := func(engine string, fault target.Fault, f check.Figures) *cell {
		g, err := target.Find(engine)
		if err != nil {
			t.Fatal(err)
		}
		return &cell{
			fault: fault, Config: &run.Config{Target: g, Hold: g.Lease, Duration: time.Second, Seed: 3},
			rep: &check.Report{
				Figures: f, Verdicts: []*check.Verdict{{Check: "K1"}, {Check: "K2", Of: 3000}, {Check: "K4", Of: 1}},
			},
		}
	}
	cells := []*cell{
		made("redis", target.Kill, check.Figures{
			Increments: 100_000, HolderBlows: 4,
			ByFault:    map[target.Fault]check.Hits{target.Kill: {Done: 5, Holder: 4}},
			AfterDeath: check.Delays{time.Second}, PlainWrites: 200, LossTold: check.Delays{2 * time.Millisecond},
			FaultTold: check.Delays{700 * time.Millisecond}, Stale: check.Causes{Faults: 30, Overruns: 20},
			PlainLost: check.Causes{Faults: 1, Overruns: 14},
		}),
		made("redis", target.Clock, check.Figures{
			Increments: 200_000, HolderBlows: 2, Doubles: 5,
			ByFault: map[target.Fault]check.Hits{
				target.Clock: {Done: 9, Holder: 8}, target.Kill: {Done: 2, Holder: 2},
			},
			AfterDeath: check.Delays{3 * time.Second}, Failovers: check.Delays{5 * time.Second},
			Outages: check.Delays{4 * time.Second},
		}),
	}
	cells[1].Target = cells[0].Target
	page := guarantees(cells, "", nil)
	for _, says := range []string{
		"| redis | 0 | 0 of 300000 (0.001 %) | 30 | 20 | 1 of 200 (0.50 %) | 14 (7.0 %) | 6 | 0s |\n",
		"| redis | – | 0.00 | 0 of 6000 (0.05 %) |",
		"| fault | redis |\n|---|---|\n| kill | 7 (6) |\n| clock | 9 (8) |\n\n## Checks\n",
		"| redis | 1s | 1s / longest 1s of 1 | 3s / longest 3s of 1 | 5s / longest 5s of 1 | 4s / longest 4s of 1 | " +
			"2ms / longest 2ms of 1 | 700ms / longest 700ms of 1 |\n",
		"other faults overlap", "| clock | **two holders possible**: 0 of 1, double grants: 5 |",
		"Engine memory is inside one process", "150 runs\n(seeds 1 to 150)",
		"| redis | clock | a lease ends early when the server's clock jumps ahead | " +
			"`interlock torture run -engine redis -faults clock -workers 0x0 -names 0 -duration 1s -hold 1s -seed " +
			"3` |\n",
	} {
		if strings.Count(page, says) != 1 {
			t.Errorf("%q is there %d times in\n%s", says, strings.Count(page, says), page)
		}
	}
	cells[0].rep.Find("K4").Spared = 2
	if page := guarantees(cells, "", nil); !strings.Contains(page, ", 2 for a moment |") {
		t.Error("two were told of the end of their connections after the server, and it does not say so")
	}
	cells[1].rep.Figures.Doubles = 0
	if page := guarantees(cells, "", nil); !strings.Contains(page, "| clock | two holders possible, not seen in 1 |") {
		t.Error("two holders are possible, and it does not say that none were seen")
	}
	cells[1].rep.Verdicts[0].Faults = []string{"an update"}
	if page := guarantees(cells, "", nil); !strings.Contains(page, "| redis | 0 | 1 of 300000 | 30 |") {
		t.Error("an update that is lost behind the fence is not on the page")
	}
}
