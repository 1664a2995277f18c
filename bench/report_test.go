package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// rates makes the results of a contended peer, one for each round.
func rates(each ...float64) []workload.Result {
	var results []workload.Result
	for _, r := range each {
		results = append(results, workload.Result{Rate: r, Shares: []float64{1, 1}})
	}
	return results
}

func TestScenarios_NamePeersThatExist_AndCompareOnlyWhatTheyMeasure(t *testing.T) {
	var known []string
	for _, p := range peer.All() {
		known = append(known, p.Name)
	}
	for _, sc := range allScenarios() {
		if sc.job.Kind != workload.Held {
			for _, p := range sc.peers {
				if !slices.Contains(known, p) {
					t.Errorf("%s measures %q, which is no peer", sc.name, p)
				}
			}
		}
		compared := slices.Clone(sc.bases)
		for _, w := range sc.wants {
			compared = append(compared, w.peer)
			if w.base != "" {
				compared = append(compared, w.base)
			}
		}
		for _, p := range compared {
			if !slices.Contains(sc.peers, p) {
				t.Errorf("%s compares with %q, which it does not measure", sc.name, p)
			}
		}
	}
}

func TestWants_AreJudgedByTheRatioOfMedians(t *testing.T) {
	m := &measured{
		scenario: scenario{
			job:   workload.Job{Kind: workload.Contend},
			wants: []want{{peer: "a", base: "b", atLeast: 0.8, says: "a against b"}},
		},
		results: map[string][]workload.Result{"a": rates(90, 10, 90), "b": rates(100, 100, 100)},
	}
	got := (&report{measured: []*measured{m}}).wants()
	want := []string{"a against b", "at least 0.8", "0.90 (0.10 to 0.90)", "yes"}
	if len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWant_IsKeptUpToItsBounds(t *testing.T) {
	least, most := want{atLeast: 0.8}, want{atMost: 3}
	for _, row := range []struct {
		w    want
		q    float64
		kept bool
	}{{least, 0.79, false}, {least, 0.8, true}, {least, 99, true}, {most, 3, true}, {most, 3.01, false}, {most, 0.1, true}} {
		if got := row.w.kept(row.q); got != row.kept {
			t.Errorf("%s: a ratio of %v is kept: %v, want %v", row.w.bound(), row.q, got, row.kept)
		}
	}
}

func TestWant_WithoutABound_IsLeftToTheReader(t *testing.T) {
	if got := new(want).verdict(99); got != "–" {
		t.Errorf("verdict %q although nothing was bounded", got)
	}
}

func TestNumbers_AreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		thousands(7): "7", thousands(999): "999", thousands(1000): "1,000", thousands(35853161): "35,853,161",
		times(229.4): "229", times(2.518): "2.52", times(0.8): "0.80", times(0.0044): "0.0044",
		duration(4.65): "4.65 ns", duration(9350): "9.35 µs", duration(2.42e6): "2.42 ms", duration(1.5e9): "1.5 s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBetween_ReplacesWhatStandsBetweenTheMarkersAndNothingElse(t *testing.T) {
	text := "before\n" + beginMark + "old\n" + endMark + "after\n"
	got, err := ofFiles.between(text, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + beginMark + "\nnew\n\n" + endMark + "after\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	again, err := ofFiles.between(got, "new\n")
	if err != nil || again != got {
		t.Errorf("the second time it is %q, %v; want no change", again, err)
	}
	for _, broken := range []string{"", beginMark, endMark + beginMark} {
		if _, err := ofFiles.between(broken, "new\n"); err == nil {
			t.Errorf("no error about the missing marker in %q", broken)
		}
	}
}

func TestReadme_HasTheMarkers(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ofFiles.between(string(text), ""); err != nil {
		t.Error(err)
	}
}

func TestRun_PrintsTheTableWithCommandAndMachine_AndTheRoundsForBenchstat(t *testing.T) {
	raw := filepath.Join(t.TempDir(), "new folder", "rounds.txt")
	var out, words bytes.Buffer
	args := []string{"-rounds", "2", "-time", "5ms", "-scenario", "processes/hold=0", "-dir", t.TempDir(), "-raw", raw}
	if err := run(t.Context(), args, &out, &words); err != nil {
		t.Fatalf("%v\n%s", err, words.String())
	}
	for _, part := range []string{
		"go run . -rounds 2 -time 5ms -seed 1 -scenario processes/hold=0", "GOMAXPROCS", "| interlock-file |", "- **flock**: ",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the output lacks %q:\n%s", part, out.String())
		}
	}
	rounds, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(rounds), "\nBenchmarkProcesses/hold=0s/peer=flock-kept-"); got != 2 {
		t.Errorf("%d rounds of flock-kept, want 2:\n%s", got, rounds)
	}
}

func TestRun_WithoutArguments_MeasuresNothing_AndSaysHowToUseIt(t *testing.T) {
	var out, words bytes.Buffer
	if err := run(t.Context(), nil, &out, &words); !errors.Is(err, flag.ErrHelp) || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, out.String())
	}
	for _, part := range []string{"-scenario redis", "minutes", "how often each peer is measured"} {
		if !strings.Contains(words.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, words.String())
		}
	}
}

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "nothing of that name"}, {"-rounds", "0"}, {"-time", "-1s"}, {"surplus"}, {"-write", "-scenario", "held"},
	} {
		var out, words bytes.Buffer
		if err := run(t.Context(), args, &out, &words); err == nil || out.Len() > 0 {
			t.Errorf("%q: error %v, output %q", args, err, out.String())
		}
	}
}

func TestMeasure_EveryRoundHasEveryPeerOnce_AndItsOrderComesFromTheSeed(t *testing.T) {
	sc := choose(scenarios(), "processes/hold=0")[0]
	s := settings{rounds: 3, time: time.Millisecond, dir: t.TempDir(), seed: 7}
	m, err := measure(t.Context(), sc, &s, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range sc.peers {
		if got := len(m.results[p]); got != s.rounds {
			t.Errorf("%s was measured %d times, want %d", p, got, s.rounds)
		}
	}
	if a, b := order(&s, 1, 5), order(&s, 1, 5); !slices.Equal(a, b) {
		t.Errorf("the same seed and round give %v and %v", a, b)
	}
}

func TestMeasure_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := settings{rounds: 1, time: time.Hour, dir: t.TempDir(), seed: 1}
	if _, err := measure(ctx, scenarios()[0], &s, func(int) {}); err == nil {
		t.Error("no error although the context had ended")
	}
}
