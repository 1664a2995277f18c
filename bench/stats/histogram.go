package stats

import (
	"math/bits"
	"slices"
	"time"
)

// steps is into how many equal parts each power of two is divided, so a quantile is off by less than 1/steps: 3 %.
const steps = 32

// Histogram counts durations in buckets that grow with them, so that processes can send theirs to each other and add
// them. The zero value is empty and ready for use. It is for one goroutine at a time.
type Histogram struct {
	Counts []int64 `json:"counts"` // by bucket
}

// Add counts d; a negative one counts as zero.
func (h *Histogram) Add(d time.Duration) {
	i := bucket(d)
	if i >= len(h.Counts) {
		h.Counts = slices.Grow(h.Counts, i+1-len(h.Counts))[:i+1]
	}
	h.Counts[i]++
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	if missing := len(other.Counts) - len(h.Counts); missing > 0 {
		h.Counts = append(h.Counts, make([]int64, missing)...)
	}
	for i, n := range other.Counts {
		h.Counts[i] += n
	}
}

// Count is how many durations were added.
func (h *Histogram) Count() int64 {
	var sum int64
	for _, n := range h.Counts {
		sum += n
	}
	return sum
}

// Quantile returns a duration that a part q of the added ones does not exceed, too large by less than 1/32. It is zero
// if nothing was added.
func (h *Histogram) Quantile(q float64) time.Duration {
	// The rank is at least one, so that Quantile(0) is the smallest that was added.
	rank := max(int64(q*float64(h.Count())+0.5), 1)
	for i, n := range h.Counts {
		if rank -= n; rank <= 0 {
			return upper(i)
		}
	}
	return 0
}

// bucket is exact below steps. From there on the leading bit says which power of two, and the bits behind it which of
// its parts.
func bucket(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < steps {
		return int(n)
	}
	shift := bits.Len64(n) - bits.Len64(steps)
	return shift*steps + int(n>>shift)
}

// upper is the largest duration of bucket i.
func upper(i int) time.Duration {
	if i < 2*steps {
		return time.Duration(i)
	}
	shift := i/steps - 1
	return time.Duration((uint64(i-shift*steps)+1)<<shift - 1)
}
