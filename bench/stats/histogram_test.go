package stats_test

import (
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/stats"
)

var seed = flag.Uint64("seed", 1, "of the random durations")

// random are durations of all magnitudes.
func random(t *testing.T, n int) []time.Duration {
	t.Helper()
	t.Logf("seed %d; replay with -seed", *seed)
	rng := rand.New(rand.NewPCG(*seed, 0))
	ds := make([]time.Duration, n)
	for i := range ds {
		ds[i] = time.Duration(rng.Uint64() >> (1 + rng.IntN(63)))
	}
	return ds
}

func add(ds []time.Duration) *stats.Histogram {
	h := &stats.Histogram{}
	for _, d := range ds {
		h.Add(d)
	}
	return h
}

func TestQuantile_IsAtLeastTheExactOne_AndTooLargeByLessThanAThirtySecond(t *testing.T) {
	ds := random(t, 9999)
	h := add(ds)
	slices.Sort(ds)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		exact := ds[max(int(q*float64(len(ds))+0.5), 1)-1]
		got := h.Quantile(q)
		if got < exact || float64(got-exact) > float64(exact)/32 {
			t.Errorf("Quantile(%v) = %d, exact is %d", q, got, exact)
		}
	}
}

func TestAdd_KeepsEveryMagnitudeApart_FromNothingToTheLongest(t *testing.T) {
	for _, d := range []time.Duration{-5, 0, 1, 31, 32, 33, 63, 64, 65, 1 << 20, 1<<20 + 1, math.MaxInt64} {
		got, want := add([]time.Duration{d}).Quantile(1), max(d, 0)
		if got < want || float64(got-want) > float64(want)/32 {
			t.Errorf("a histogram of %d alone says %d", d, got)
		}
	}
}

func TestMerge_IsAsIfOneHistogramHadCountedAll(t *testing.T) {
	ds := random(t, 1000)
	all := add(ds)
	for _, cut := range []int{0, 1, 500, 1000} {
		merged := add(ds[:cut])
		merged.Merge(add(ds[cut:]))
		if merged.Count() != all.Count() || !slices.Equal(merged.Counts, all.Counts) {
			t.Errorf("cut at %d: the parts merged differ from the whole", cut)
		}
	}
}

func TestHistogram_SurvivesTheWayToAnotherProcess(t *testing.T) {
	h := add(random(t, 100))
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var back stats.Histogram
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Counts, h.Counts) {
		t.Errorf("sent %v, received %v", h.Counts, back.Counts)
	}
}

func TestQuantile_OfNothing_IsZero(t *testing.T) {
	if got := new(stats.Histogram).Quantile(0.99); got != 0 {
		t.Errorf("Quantile = %v, want 0", got)
	}
}
