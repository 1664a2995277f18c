package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/bench/compare"
	"golang.org/x/perf/benchfmt"
)

func valuesOf(unit string, x float64) []benchfmt.Value { return []benchfmt.Value{of(x, unit)} }

func TestRounds_AreReadAsTheyWereWritten(t *testing.T) {
	all := rounds{
		{"redis-pair/apart", "bsm-1ms", []benchfmt.Value{of(5.5, perOp), of(0.000123, clientShare)}},
		{"processes/hold=20µs", "sync.Mutex", []benchfmt.Value{of(7, p99)}},
	}
	var text strings.Builder
	from := provenance{"go run . -rounds 2", "a machine: small"}
	if err := all.write(&text, from); err != nil {
		t.Fatal(err)
	}
	got, gotFrom, err := parseRounds(strings.NewReader(text.String()), "rounds")
	if err != nil || gotFrom != from || len(got) != len(all) {
		t.Fatalf("%v %v %v from\n%s", got, gotFrom, err, &text)
	}
	for i := range all {
		if got[i].scenario != all[i].scenario || got[i].peer != all[i].peer ||
			!slices.Equal(got[i].values, all[i].values) {
			t.Errorf("got %+v, want %+v", got[i], all[i])
		}
	}
}

func TestRounds_RefuseWhatIsNoRound(t *testing.T) {
	for _, text := range []string{
		"BenchmarkRedis-pair 1 5 ns/op\n", "BenchmarkA/peer=b-2 1 five ns/op\n", "BenchmarkA/peer=b 1 5 ns/op\n",
	} {
		if r, _, err := parseRounds(strings.NewReader(text), "rounds"); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
}

func TestRatio_IsOfMedians_WithTheRangeInsideOfRounds(t *testing.T) {
	for _, row := range []struct {
		a, b []float64
		want ratio
	}{
		{[]float64{90, 10, 90}, []float64{100, 100, 100}, ratio{0.9, 0.1, 0.9}},
		{[]float64{1, 4, 3}, []float64{4, 2, 3}, ratio{1, 0.25, 2}}, // the order of rounds pairs them
		// the machine was ten times slower in round two
		{[]float64{100, 10, 100}, []float64{50, 5, 50}, ratio{2, 2, 2}},
	} {
		if got := told("s", rate, map[string][]float64{"a": row.a, "b": row.b}).ratio("s", "a", "b",
			rate); got != row.want {
			t.Errorf("%v against %v: %v, want %v", row.a, row.b, got, row.want)
		}
	}
	if got := rounds(nil).ratio("s", "a", "b", rate).of; !math.IsNaN(got) {
		t.Errorf("the ratio of nothing is %v", got)
	}
}

func TestWant_IsKeptUpToItsBounds_AndNeverByWhatIsNoNumber(t *testing.T) {
	least, most, none := want{atLeast: 0.8}, want{atMost: 3}, want{none: true}
	for _, row := range []struct {
		w    want
		x    float64
		kept bool
	}{
		{least, 0.79, false},
		{least, 0.8, true},
		{least, 99, true},
		{most, 3, true},
		{most, 3.01, false},
		{most, 0.1, true},
		{most, math.NaN(), false},
		{none, 0, true},
		{none, 1, false},
	} {
		if got := row.w.kept(row.x); got != row.kept {
			t.Errorf("%+v: %v is kept: %v, want %v", row.w, row.x, got, row.kept)
		}
	}
}

func TestDemands_AreSaidWithWhatWasMeasured(t *testing.T) {
	w := want{peer: "a", unit: rate, base: "b", atLeast: 0.8}
	all := told("s", rate, map[string][]float64{"a": {90, 10, 90}, "b": {100, 100, 100}})
	if got := all.judge("s", &w); got.text != "at least 0.80 × b: 0.90 (0.10 to 0.90)" || !got.kept {
		t.Errorf("%+v", got)
	}
	w = want{peer: "a", unit: p99, atMost: 5e6}
	all = told("s", p99, map[string][]float64{"a": {6e6}})
	if got := all.judge("s", &w); got.text != "at most 5 ms: 6 ms, **not kept**" || got.kept {
		t.Errorf("%+v", got)
	}
	w = want{peer: "a", unit: unserved, none: true}
	if got := told("s", unserved, map[string][]float64{"a": {0}}).judge("s", &w); got.text != "not served: 0" {
		t.Errorf("%+v", got)
	}
}

// A thousand sessions may cost the server more than ten times what a hundred cost: what they cost without a lock is its
// own.
func TestGrowth_OfAHerd_IsJudgedAgainstThatOfWhatDoesNotLock(t *testing.T) {
	few := told("few", perGrant, map[string][]float64{"own": {100}, "floor": {100}})
	for _, row := range []struct {
		own, floor float64
		base       string
		kept       bool
	}{
		{125, 1, "", true}, {126, 1, "", false}, {180, 150, "floor", true}, {180, 100, "floor", false},
	} {
		many := told("many", perGrant, map[string][]float64{"own": {row.own}, "floor": {row.floor}})
		all := append(slices.Clone(few), many...)
		w := want{peer: "own", unit: perGrant, from: "few", base: row.base, atMost: 1.25}
		if got := all.judge("many", &w); got.kept != row.kept {
			t.Errorf("%+v: %+v", row, got)
		}
		all = append(all, told("many", unserved, map[string][]float64{"own": {1}})...)
		if got := all.judge("many", &w); got.kept {
			t.Errorf("not all were served, and yet %+v", got)
		}
	}
}

func TestTable_SaysLimitsAsSuch_AndWhyADemandIsNotKept(t *testing.T) {
	const herd = "redis-herd"
	all := told(herd, perHerd, map[string][]float64{interlockRedis: {3e8}, floorHandoff: {1e8}, redsync: {1e10}})
	all = append(all, told(herd, unserved, map[string][]float64{interlockRedis: {0}, redsync: {7}})...)
	all = append(all, told(herd, commandsAGrant, map[string][]float64{interlockRedis: {2}})...)
	some := all.tablesOf()
	if len(some) != 1 {
		t.Fatalf("%d tables, want that of %s", len(some), herd)
	}
	text := some[0].markdown(all)
	for _, part := range []string{
		"| 300 ms (3.00) |", "| > 10 s (> 100) |", "| 100 ms |", "**not kept**", "- `redis-herd`: ", " – |",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the table lacks %q:\n%s", part, text)
		}
	}
	var columns int
	for row := range strings.Lines(text) {
		if n := strings.Count(row, "|"); n > 0 && columns == 0 {
			columns = n
		} else if n > 0 && n != columns {
			t.Errorf("%d columns, want %d: %s", n, columns, row)
		}
	}
}

func TestWrapped_KeepsTheWidth_AndEveryWord(t *testing.T) {
	words := strings.Repeat("word and ", 50)
	got := wrapped("- " + words)
	for l := range strings.Lines(got) {
		if len(strings.TrimSuffix(l, "\n")) > 120 {
			t.Errorf("a line has %d characters: %s", len(l), l)
		}
	}
	if strings.Join(strings.Fields(got), " ") != "- "+strings.TrimSpace(words) {
		t.Errorf("%s", got)
	}
}

func TestNumbers_AreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		thousands(7): "7", thousands(999): "999", thousands(1000): "1,000", thousands(35853161): "35,853,161",
		thousands(-500264): "-500,264",
		times(229.4):       "229", times(2.518): "2.52", times(0.8): "0.80", times(0.0044): "0.0044",
		duration(4.65): "4.65 ns", duration(9350): "9.35 µs", duration(2.42e6): "2.42 ms", duration(1.5e9): "1.5 s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMarks_KeepWhatStandsOutside_AndTheSecondTimeEverything(t *testing.T) {
	m := marksOf("x")
	text := "before\n" + m.begin + "old\n" + m.end + "after\n"
	got, err := m.between(text, "new\n")
	if want := "before\n" + m.begin + "new\n" + m.end + "after\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if again, err := m.between(got, "new\n"); err != nil || again != got {
		t.Errorf("the second time it is %q, %v; want no change", again, err)
	}
	for _, broken := range []string{"", m.begin, m.end + m.begin} {
		if _, err := m.between(broken, "new\n"); err == nil {
			t.Errorf("no error about the missing mark in %q", broken)
		}
	}
}

// The files say what the stored rounds say: who edits one by hand, or a scenario without writing the tables again, is
// told.
func TestTables_InTheFiles_AreThoseOfTheStoredRounds(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bench")
	for _, name := range []string{"baseline", evidence} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "peer"), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, readme), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeTables(folder); err != nil {
		t.Fatal(err)
	}
	files := []string{readme, filepath.Join("peer", readme), filepath.Join(evidence, readme)}
	for _, table := range tables {
		files = append(files, filepath.Join(evidence, table.page))
	}
	for _, file := range files {
		want, _ := os.ReadFile(filepath.Join(folder, file)) // it was just written
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what GOWORK=off go run . -tables writes, %v", file, err)
		}
	}
}

func several(xs ...float64) compare.Cell { return compare.Cell{Values: xs} }

func TestComparison_SaysNumbersAndReasons_AndItsFileHasTheMarks(t *testing.T) {
	rows := []compare.Row{
		{Label: "A", Alone: several(1e3, 2e3, 9e3), Killed: several(1e9, 4e9, 2e9)},
		{Label: "B", Alone: several(2e6), Killed: compare.Cell{Why: "nobody <dies>"}},
	}
	text := comparisonText(rows, "command", "machine")
	for _, part := range []string{
		"| A | 2 µs |", "2 s (1 s to 4 s)", "– [1]", "1. Nobody <dies>.", "machine", "command",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the tables lack %q:\n%s", part, text)
		}
	}
	page, err := os.ReadFile(comparisonFile)
	if err == nil {
		_, err = marksOf(onComparison).between(string(page), "")
	}
	if err != nil {
		t.Error(err)
	}
}
