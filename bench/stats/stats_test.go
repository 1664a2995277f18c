package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/bench/stats"
)

func TestMedian_IsTheMiddle_OrTheMeanOfTheTwoInTheMiddle(t *testing.T) {
	for _, row := range []struct {
		xs   []float64
		want float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{9, 1, 5, 6}, 5.5},
		{[]float64{1, 1, 1, 1e9}, 1}, // one disturbed round changes nothing
	} {
		if got := stats.Median(row.xs); got != row.want {
			t.Errorf("Median(%v) = %v, want %v", row.xs, got, row.want)
		}
	}
}

func TestMedian_OfNothing_IsNoNumber(t *testing.T) {
	if got := stats.Median(nil); !math.IsNaN(got) {
		t.Errorf("Median(nil) = %v, want NaN", got)
	}
}

func TestQuantile_IsTheSmallestThatAPartDoesNotExceed(t *testing.T) {
	xs := []float64{50, 10, 40, 20, 30}
	for _, row := range []struct{ q, want float64 }{{0, 10}, {0.2, 10}, {0.21, 20}, {0.5, 30}, {0.99, 50}, {1, 50}} {
		if got := stats.Quantile(xs, row.q); got != row.want {
			t.Errorf("Quantile(%v) = %v, want %v", row.q, got, row.want)
		}
	}
	if got := stats.Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("Quantile of nothing = %v, want NaN", got)
	}
}

func TestMedian_LeavesTheOrderOfRoundsAlone(t *testing.T) {
	xs := []float64{3, 1, 2}
	stats.Median(xs)
	if want := []float64{3, 1, 2}; !slices.Equal(xs, want) {
		t.Errorf("after Median the rounds are %v, want %v: they are paired by position", xs, want)
	}
}

func TestCompare_IsTheRatioOfMedians_WithTheRangeOfTheRounds(t *testing.T) {
	got := stats.Compare([]float64{20, 40, 90}, []float64{10, 10, 30})
	if want := (stats.Ratio{Of: 4, Min: 2, Max: 4}); got != want {
		t.Errorf("Compare = %+v, want %+v", got, want)
	}
}

func TestCompare_LoadThatMeetsBothPeersOfARound_DoesNotWidenTheRange(t *testing.T) {
	got := stats.Compare([]float64{100, 10, 100}, []float64{50, 5, 50}) // the machine was ten times slower in round two
	if want := (stats.Ratio{Of: 2, Min: 2, Max: 2}); got != want {
		t.Errorf("Compare = %+v, want %+v", got, want)
	}
}

func TestJainAndWorst_SayHowEqualSharesAre(t *testing.T) {
	for _, row := range []struct {
		name        string
		shares      []float64
		jain, worst float64
	}{
		{"equal", []float64{5, 5, 5, 5}, 1, 1},
		{"one has everything", []float64{8, 0, 0, 0}, 0.25, 0},
		{"half as much as the other", []float64{1, 2}, 0.9, 2.0 / 3},
		{"alone", []float64{3}, 1, 1},
		{"nobody got anything", []float64{0, 0}, 1, 1},
	} {
		if got := stats.Jain(row.shares); math.Abs(got-row.jain) > 1e-12 {
			t.Errorf("%s: Jain = %v, want %v", row.name, got, row.jain)
		}
		if got := stats.Worst(row.shares); math.Abs(got-row.worst) > 1e-12 {
			t.Errorf("%s: Worst = %v, want %v", row.name, got, row.worst)
		}
	}
}
