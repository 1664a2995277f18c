package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPerform_PrintsTheTableWithCommandAndMachine_AndKeepsTheRoundsForBenchstat(t *testing.T) {
	startRedis(t) // skips
	for scenario, parts := range map[string][]string{
		"processes/hold=0":    {"-scenario processes/hold=0", "GOMAXPROCS", "| interlock-file |", "| flock-kept |"},
		"redis-pair/anywhere": {"over loopback", "| set-nx |", "at most 1.10 × set-nx"},
	} {
		raw := filepath.Join(t.TempDir(), "new folder", "rounds.txt")
		var out, words bytes.Buffer
		args := []string{"-rounds", "2", "-time", "5ms", "-scenario", scenario, "-dir", t.TempDir(), "-raw", raw}
		if err := perform(t.Context(), args, &out, &words); err != nil {
			t.Fatalf("%v\n%s", err, words.String())
		}
		for _, part := range parts {
			if !strings.Contains(out.String(), part) {
				t.Errorf("the output lacks %q:\n%s", part, out.String())
			}
		}
		all, from, err := readRounds(raw)
		if err != nil || !strings.Contains(from.command, scenario) || len(all) == 0 || len(all)%2 != 0 {
			t.Errorf("%d lines, %+v, %v", len(all), from, err)
		}
	}
}

func TestPerform_WithoutArguments_MeasuresNothing_AndSaysHowToUseIt(t *testing.T) {
	var out, words bytes.Buffer
	if err := perform(t.Context(), nil, &out, &words); !errors.Is(err, flag.ErrHelp) || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, out.String())
	}
	for _, part := range []string{"-scenario redis", "minutes", "how often each peer is measured"} {
		if !strings.Contains(words.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, words.String())
		}
	}
}

func TestPerform_RefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "nothing of that name"},
		{"-rounds", "0"},
		{"-time", "-1s"},
		{"surplus"},
		{"-write", "-scenario", "uncontended"},
		{"-write", "-scenario", "zk"},
		{"-write", "-scenario", "comparison/file"},
	} {
		var out, words bytes.Buffer
		if err := perform(t.Context(), args, &out, &words); err == nil || out.Len() > 0 {
			t.Errorf("%q: error %v, output %q", args, err, out.String())
		}
	}
}

func TestParse_WriteOfARun_KeepsItsRounds_OfWhichThereAreStoredOnes(t *testing.T) {
	for _, run := range runs {
		s, err := parse([]string{"-write", "-scenario", run.of}, new(bytes.Buffer))
		if err != nil || s.raw != run.baseline() {
			t.Errorf("%s: raw %q, %v; want %q", run.name, s.raw, err, run.baseline())
		}
		if _, err := os.Stat(run.baseline()); err != nil {
			t.Error(err)
		}
	}
}

func TestChosenBy_WithoutAName_IsWhatNeedsNoServer(t *testing.T) {
	all, err := chosenBy(&settings{})
	if err != nil || slices.ContainsFunc(all, func(sc scenario) bool { return sc.served() || sc.measures != nil }) {
		t.Errorf("%s, %v", names(all), err)
	}
}
