package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

// pretended is a run of a scenario in which each of its peers had one result.
func pretended(sc scenario, of func(peer string) workload.Result) *measured {
	m := &measured{scenario: sc, results: map[string][]workload.Result{}}
	for _, p := range sc.peers {
		m.results[p] = []workload.Result{of(p)}
	}
	return m
}

func pretendedHerd(n int, each time.Duration) *measured {
	return pretended(growingWaiters(n), func(string) workload.Result {
		return workload.Result{Herd: &workload.HerdResult{Total: float64(n) * float64(each)}}
	})
}

func TestFamily_MakesOneTable_WhoseFirstColumnIsThePoint(t *testing.T) {
	r := &report{measured: []*measured{pretendedHerd(10, time.Microsecond), pretendedHerd(10_000, time.Microsecond)}}
	text := r.markdown()
	if got := strings.Count(text, "\n### "); got != 3 {
		t.Errorf("%d titles, want one for the demands, one for the table, and one for the peers:\n%s", got, text)
	}
	var heads, first, last string
	for _, row := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(row, "| waiters | peer |"):
			heads = row
		case strings.HasPrefix(row, "| 10 | interlock-redis |"):
			first = row
		case strings.HasPrefix(row, "| 10,000 | interlock-redis |"):
			last = row
		}
	}
	if n := strings.Count(heads, "|"); n == 0 || strings.Count(first, "|") != n || strings.Count(last, "|") != n {
		t.Errorf("the rows do not fit under the heads:\n%s\n%s\n%s", heads, first, last)
	}
	// The largest herd is not compared with BLPOP, for which it is too large.
	if !strings.Contains(heads, "of blpop") || !strings.Contains(first, "1.00 (1.00 to 1.00)") || !strings.Contains(last, "| - |") {
		t.Errorf("the comparison with blpop:\n%s\n%s\n%s", heads, first, last)
	}
}

// One waiter alone has nobody in the way, so it is not what very many are compared with.
func TestWaiterWants_CompareTheMostWithFew(t *testing.T) {
	for _, row := range []struct {
		last time.Duration
		kept string
	}{{100, "yes"}, {150, "yes"}, {151, "**no**"}} {
		r := &report{measured: []*measured{
			pretendedHerd(1, 10), pretendedHerd(10, 100), pretendedHerd(100, 900), pretendedHerd(10_000, row.last),
		}}
		got := r.waiterWants()
		if len(got) != 2 || got[0][3] != row.kept || got[1][3] != row.kept {
			t.Errorf("%d ns for each of many against 100 for each of few: %q, want %q", row.last, got, row.kept)
		}
	}
	if got := (&report{measured: []*measured{pretendedHerd(1, 10), pretendedHerd(10, 100)}}).waiterWants(); len(got) > 0 {
		t.Errorf("one herd is compared with itself: %q", got)
	}
}

func TestDistance_IsJudgedInRoundTripsThatWereMeasured(t *testing.T) {
	m := pretended(distantPair(10*time.Millisecond), func(string) workload.Result { return workload.Result{PerOp: 22e6, RoundTrip: 11e6} })
	got := (&report{measured: []*measured{m}}).wants()
	if len(got) != 1 || got[0][2] != "2.00" || got[0][3] != "yes" {
		t.Errorf("22 ms through round trips of 11 ms: %q", got)
	}
	m = pretended(distantHandoff(10*time.Millisecond), func(string) workload.Result {
		return workload.Result{RoundTrip: 10e6, Handoff: &workload.HandoffResult{Latencies: []float64{12e6}}}
	})
	if got = (&report{measured: []*measured{m}}).wants(); len(got) != 1 || got[0][2] != "1.20" || got[0][3] != "**no**" {
		t.Errorf("a hand-off in 12 ms through round trips of 10 ms: %q", got)
	}
}

func TestDistance_OfAShortWay_IsLeftToTheReader(t *testing.T) {
	m := pretended(distantPair(time.Millisecond), func(string) workload.Result { return workload.Result{PerOp: 3e6, RoundTrip: 1e6} })
	if got := (&report{measured: []*measured{m}}).wants(); len(got) != 1 || got[0][1] != "no bound" || got[0][3] != "–" {
		t.Errorf("%q", got)
	}
}

func TestBars_OfNothing_HaveNoLength_OnALogarithmicScale(t *testing.T) {
	length := scale([]bar{{value: 0}, {value: 3}, {value: 3000}}, 100, false)
	if length(0) > 1 || length(3) <= 1 || length(3000) < 99 {
		t.Errorf("bars of 0, 3 and 3000 are %v, %v and %v long", length(0), length(3), length(3000))
	}
}

func TestPictures_AreDrawnFromTheRoundsThatWereWritten_AlwaysTheSame(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "baseline"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := &report{measured: []*measured{pretendedHerd(10, 2*time.Millisecond), pretendedHerd(10_000, 3*time.Millisecond)}}
	if err := os.WriteFile(filepath.Join(folder, growthBaseline), []byte(r.benchfmt()), 0o600); err != nil {
		t.Fatal(err)
	}
	var pictures [][]byte
	for range 2 {
		drawn, err := draw(folder, "")
		if err != nil || !slices.Equal(drawn, []string{filepath.Join(folder, pictureFolder, "growth.svg")}) {
			t.Fatalf("drawn are %q, %v; want what there are rounds of", drawn, err)
		}
		svg, err := os.ReadFile(drawn[0])
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, svg)
	}
	if !bytes.Equal(pictures[0], pictures[1]) {
		t.Error("the same rounds make two pictures")
	}
	for _, part := range []string{">interlock-redis, 3 ms<", ">blpop, 2 ms<", ">Time for each waiter<", ">10,000<"} {
		if !bytes.Contains(pictures[0], []byte(part)) {
			t.Errorf("the picture lacks %q:\n%s", part, pictures[0])
		}
	}
}

func TestPictures_OfEveryRunThatHasThem_AreInItsTables(t *testing.T) {
	for _, d := range drawings() {
		if !slices.ContainsFunc([]string{onRedis, onDistance, onGrowth}, func(s string) bool { return tables[s].raw == d.from }) {
			t.Errorf("%s is drawn from %s, which no run writes", d.file, d.from)
		}
		if !strings.Contains(shown(d.from), "("+pictureFolder+"/"+d.file+")") {
			t.Errorf("%s is not shown with the tables of %s", d.file, d.from)
		}
	}
}

func TestParseRounds_RefusesWhatIsNoRound(t *testing.T) {
	for _, text := range []string{
		"BenchmarkRedis-pair 1 5 ns/op\n", "BenchmarkA/peer=b-2 1 5\n", "BenchmarkA/peer=b-2 1 five ns/op\n", "Benchmark\n",
	} {
		if r, err := parseRounds(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
	r, err := parseRounds(strings.NewReader(
		"# a comment\ngoos: linux\nBenchmarkA-b/1/peer=c-d-2 1 5.5 ns/op 1 x\nBenchmarkA-b/1/peer=c-d-2 1 7.5 ns/op 2 x\n"))
	if err != nil || r.median("a-b/1", "c-d", "ns/op") != 6.5 || r.median("a-b/1", "c-d", "x") != 1.5 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestRounds_OfHerdsThatWereNotServed_HaveNoTime(t *testing.T) {
	m := pretended(growingWaiters(10), func(string) workload.Result {
		return workload.Result{Herd: &workload.HerdResult{Total: 1e9, Unserved: 3}}
	})
	r, err := parseRounds(strings.NewReader((&report{measured: []*measured{m}}).benchfmt()))
	if err != nil {
		t.Fatal(err)
	}
	if v := r.median("growth-waiters/10", interlockRedis, "ns/grant"); !math.IsNaN(v) {
		t.Errorf("%v ns, although what was measured is the limit", v)
	}
}

func TestLineLabels_AreApart_AndInsideOfThePanel(t *testing.T) {
	var curves []curve
	for range 8 {
		curves = append(curves, curve{values: []float64{5}})
	}
	at := apart(curves, func(float64) float64 { return chartHeight - chartBottom - panelBottom })
	slices.Sort(at)
	for i := range at {
		if at[i] > chartHeight-chartBottom || i > 0 && at[i]-at[i-1] < 12 {
			t.Errorf("labels are at %v", at)
		}
	}
}
