// Package stats is the arithmetic inside of one round: fairness, and quantiles of times. What compares rounds is
// benchmath.
package stats

import (
	"math"
	"slices"
)

// Quantile returns the smallest of xs that a part q of them does not exceed, and NaN if there is none. It leaves xs
// alone.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Jain is Jain's index of fairness: 1 if all shares are equal, 1/n if one of n has everything. Of nothing it is 1:
// nobody got more than another.
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
