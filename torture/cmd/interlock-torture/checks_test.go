package main

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// The page says of how many cases each check speaks, which server and which commit, and lists each engine once.
func TestGuarantees_SayOfHowMany(t *testing.T) {
	g, err := target.Find("redis")
	if err != nil {
		t.Fatal(err)
	}
	made := func(fault target.Fault, f check.Figures) *cell {
		rep := &check.Report{About: run.About{Server: "Redis 7.0", Commit: "abc"}, Figures: f}
		for _, name := range []string{"K1", "K2", "K3", "K4", "K7", "K10"} {
			rep.Verdicts = append(rep.Verdicts, &check.Verdict{Check: name, Of: 40})
		}
		return &cell{fault: fault, Config: &run.Config{Target: g}, rep: rep}
	}
	other, err := target.Find("file")
	if err != nil {
		t.Fatal(err)
	}
	cells := []*cell{
		made(target.None, check.Figures{Ran: time.Hour, CalmHeld: 30 * time.Minute}),
		made(target.Wipe, check.Figures{Ran: time.Hour, TokensBack: 1, TokenStep: 7}),
		{fault: target.None, Config: &run.Config{Target: other}},
		made(long, check.Figures{CalmHeld: 30 * time.Minute}),
	}
	cells[1].rep.Verdicts[2].Faults = []string{"a token"}
	cells[1].rep.Verdicts = append(cells[1].rep.Verdicts, &check.Verdict{Check: "K5", Of: 11, Spared: 2},
		&check.Verdict{Check: "K8", Spared: 3})
	page := guarantees(cells, "-each 1s", nil)
	for _, says := range []string{
		"(commit abc)",
		"| fault | redis | file |\n|---|---|---|\n| none |",
		"| redis | Redis 7.0 | 2.00 | 0 of 120 (2.5 %) | 1 of 120, by 7 | 0 of 11 (+2) | – in 1.00 h (below 3/h) | 0 " +
			"of 120 | – (+3) | – | 0 of 120 | – |\n",
		"| file | – | 0.00 | – | – | – | – | – | – | – | – | – |\n",
	} {
		if strings.Count(page, says) != 1 {
			t.Errorf("%q is there %d times in\n%s", says, strings.Count(page, says), page)
		}
	}
}

func TestLossesPerHour(t *testing.T) {
	for f, want := range map[*check.Figures]string{
		{CalmHeld: 2 * time.Hour, FalseLosses: 1}: " in 2.00 h (0.5/h)",
		{CalmHeld: 2 * time.Hour}:                 " in 2.00 h (below 1.5/h)",
		{}:                                        "",
	} {
		if got := perHour(f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}
