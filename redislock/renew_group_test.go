package redislock

import (
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// What one script renews is bounded, because the server does nothing else meanwhile.
func TestGroup_RenewsSoManyHoldsWithOneScript(t *testing.T) {
	batch := func(n, each int) (all []driver.Renewal) {
		for i := range n {
			all = append(all, driver.Renewal{Key: driver.Key{Kind: driver.KindRWMutex, Name: fmt.Sprint(i / each)}})
		}
		return all
	}
	for _, row := range []struct {
		what    string
		batch   []driver.Renewal
		sharded bool
		want    []int
	}{
		{"none", nil, false, nil},
		{"one", batch(1, 1), false, []int{1}},
		{"as many locks as go in", batch(250, 1), false, []int{250}},
		{"one more", batch(251, 1), false, []int{250, 1}},
		{"many locks", batch(600, 1), false, []int{250, 250, 100}},
		{"holds that share one lock", batch(300, 300), false, []int{125, 125, 50}},
		{"in a Cluster", batch(3, 1), true, []int{1, 1, 1}},
		{"in a Cluster, of one lock", batch(3, 3), true, []int{1, 1, 1}},
	} {
		d := &Driver{conn: &puppet{sharded: row.sharded}}
		var sizes []int
		next := 0
		for _, g := range d.group(row.batch) {
			sizes = append(sizes, len(g.members))
			for _, i := range g.members {
				if i != next {
					t.Errorf("%s: %d comes where %d should", row.what, i, next)
				}
				next++
			}
		}
		if !slices.Equal(sizes, row.want) || next != len(row.batch) {
			t.Errorf("%s: groups of %v, want %v", row.what, sizes, row.want)
		}
	}
}
