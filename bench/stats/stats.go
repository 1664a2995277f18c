// Package stats is the arithmetic of the tables: medians, ratios of interleaved rounds, fairness, and quantiles of waits.
package stats

import (
	"math"
	"slices"
)

// Median returns the middle of xs, or the mean of the two in the middle, and NaN if there is none. It leaves xs alone.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile returns the smallest of xs that a part q of them does not exceed, and NaN if there is none. It leaves xs alone.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratio compares two peers that were measured in the same rounds.
type Ratio struct {
	Of       float64 // the median of one over the median of the other
	Min, Max float64 // the smallest and the largest ratio within one round
}

// Compare returns the ratio of a to b. a[i] and b[i] are of the same round, so that load from elsewhere met both. Rounds
// that only one of them has are left out of Min and Max.
func Compare(a, b []float64) Ratio {
	r := Ratio{Of: Median(a) / Median(b), Min: math.NaN(), Max: math.NaN()}
	for i := range min(len(a), len(b)) {
		q := a[i] / b[i]
		if i == 0 {
			r.Min, r.Max = q, q
		}
		r.Min, r.Max = min(r.Min, q), max(r.Max, q)
	}
	return r
}

// Jain is Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has everything. Of nothing it is 1: nobody
// got more than another.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Worst is the smallest share as a part of an equal one: 1 is fair, 0 is starved.
func Worst(shares []float64) float64 {
	var sum float64
	for _, x := range shares {
		sum += x
	}
	if sum == 0 {
		return 1
	}
	return slices.Min(shares) * float64(len(shares)) / sum
}
