package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// onAnyRedis are the scenarios on Redis, of families one.
func onAnyRedis() []scenario {
	return slices.Concat(redisScenarios(), onePerFamily(distanceScenarios()), onePerFamily(growthScenarios()))
}

func TestRedisScenarios_EachMeasuresAllOfItsPeers_AndMakesATable(t *testing.T) {
	for _, sc := range onAnyRedis() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel() // most of it waits, and each has its own server
			s := &settings{rounds: 1, time: 20 * time.Millisecond, dir: t.TempDir(), seed: 1, redis: startRedis(t)}
			m, err := measure(t.Context(), small(sc), s, func(int) {})
			if err != nil {
				t.Fatal(err)
			}
			r := &report{measured: []*measured{m}}
			tables, rounds := r.markdown(), r.benchfmt()
			for _, p := range sc.peers {
				if !strings.Contains(tables, "| "+p+" |") || !strings.Contains(rounds, "/peer="+p+"-") {
					t.Errorf("%s is missing:\n%s\n%s", p, tables, rounds)
				}
			}
			if len(r.wants()) != len(sc.wants) {
				t.Errorf("%d demands are judged, want %d", len(r.wants()), len(sc.wants))
			}
		})
	}
}

func TestRedisScenarios_TogetherHaveEveryPeerThatNeedsAServer(t *testing.T) {
	var measured []string
	for _, sc := range onAnyRedis() {
		measured = append(measured, sc.peers...)
	}
	for _, p := range peer.All() {
		if p.Redis && !slices.Contains(measured, p.Name) {
			t.Errorf("%s is measured nowhere", p.Name)
		}
	}
}

func TestRun_OnRedis_SaysHowToRepeatEachTable_AndOnWhichServer(t *testing.T) {
	startRedis(t) // skips
	raw := filepath.Join(t.TempDir(), "rounds.txt")
	var out, words bytes.Buffer
	args := []string{"-rounds", "1", "-time", "5ms", "-scenario", "redis-pair/any", "-dir", t.TempDir(), "-raw", raw}
	if err := run(t.Context(), args, &out, &words); err != nil {
		t.Fatalf("%v\n%s", err, words.String())
	}
	for _, part := range []string{
		"`GOWORK=off go run . -rounds 1 -time 5ms -seed 1 -scenario redis-pair/anywhere`", "over loopback", "| set-nx |",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the output lacks %q:\n%s", part, out.String())
		}
	}
	if rounds, err := os.ReadFile(raw); err != nil || !strings.Contains(string(rounds), "peer=set-nx-") {
		t.Errorf("the rounds are %q, %v", rounds, err)
	}
}

func TestParse_WriteOnRedis_KeepsItsRoundsElsewhere(t *testing.T) {
	s, err := parse([]string{"-write", "-scenario", "redis"}, new(bytes.Buffer))
	if err != nil || s.raw != redisBaseline {
		t.Errorf("raw %q, %v; want %q", s.raw, err, redisBaseline)
	}
	if _, err := parse([]string{"-write", "-scenario", "redis-pair"}, new(bytes.Buffer)); err == nil {
		t.Error("no error although only some tables would be written")
	}
}

func TestChosenBy_WithoutAName_IsWhatNeedsNoServer(t *testing.T) {
	all, err := chosenBy(&settings{})
	if err != nil || slices.ContainsFunc(all, func(sc scenario) bool { return sc.redis || sc.engine != "" }) {
		t.Errorf("%s, %v", names(all), err)
	}
}

func TestWant_WithoutABase_IsAboutTheNumberItself(t *testing.T) {
	m := &measured{
		scenario: scenario{job: workload.Job{Kind: workload.Contend}, wants: []want{
			{peer: "a", of: commands, atMost: 2.1, says: "commands"},
			{peer: "a", of: commands, none: true, says: "none"},
		}},
		results: map[string][]workload.Result{"a": {{Commands: 2}, {Commands: 2.5}, {Commands: 2}}},
	}
	got := (&report{measured: []*measured{m}}).wants()
	for i, want := range [][]string{{"commands", "at most 2.1", "2.00", "yes"}, {"none", "0", "2.00", "**no**"}} {
		if !slices.Equal(got[i], want) {
			t.Errorf("got %q, want %q", got[i], want)
		}
	}
}
