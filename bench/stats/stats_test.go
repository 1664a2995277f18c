package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/bench/stats"
)

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

func TestQuantile_LeavesTheOrderAlone(t *testing.T) {
	xs := []float64{3, 1, 2}
	stats.Quantile(xs, 0.5)
	if want := []float64{3, 1, 2}; !slices.Equal(xs, want) {
		t.Errorf("after Quantile the numbers are %v, want %v", xs, want)
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
