package redislock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// pipelined answers a batch when it has run all of it, as a connection does.
type pipelined struct{ *puppet }

func (p pipelined) Batch(ctx context.Context, calls []Call, done func(i int, r Reply)) {
	replies := make([]Reply, len(calls))
	for i := range calls {
		replies[i] = p.Call(ctx, &calls[i])
	}
	for i, r := range replies {
		done(i, r)
	}
}

// Very many holds are renewed part by part: each answer is told of as soon as its part is there, and once.
func TestRenew_OfVeryManyHolds_TellsOfEachPartAtOnce(t *testing.T) {
	const all = 2*mostRenewed + 1
	asked, told := 0, make([]int, all)
	p := &puppet{answer: func(c *Call) Reply {
		asked += len(c.Keys)
		return Reply{Text: strings.Repeat("k", len(c.Keys))}
	}}
	d := &Driver{conn: pipelined{p}, entries: make(map[string]*entry), closing: make(chan struct{})}
	batch := make([]driver.Renewal, all)
	for i := range batch {
		name := fmt.Sprint(i)
		batch[i] = driver.Renewal{Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: name, Lease: time.Minute}
	}
	d.Renew(t.Context(), batch, func(i int, err error) {
		told[i]++
		if err != nil || asked > i+mostRenewed {
			t.Fatalf("%d: %v, when %d have been asked for", i, err, asked)
		}
	})
	for i, n := range told {
		if n != 1 {
			t.Fatalf("%d was told %d times", i, n)
		}
	}
}
