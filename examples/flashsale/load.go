package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// crowd sends orders at a rate that does not depend on how fast they are answered (open loop): who comes does not know
// that others still wait. Each order's time counts from when it should have been sent, so a gate that hangs for a
// second is seen by all who would have come in that second.
type crowd struct {
	gate   *gate
	rate   float64 // orders in a second, at random instants
	length time.Duration
	users  int
	seed   uint64
}

// shot is one order and what became of it.
type shot struct {
	order  order
	answer answer
	took   time.Duration
	err    error
}

const (
	// tries is how often a user asks again, with the same request, when the outcome is unknown.
	tries = 5

	// clickTwice is the part of the users who press the button twice, and so send one request twice at once.
	clickTwice = 0.1

	// orderTimeout bounds one try.
	orderTimeout = 2 * time.Second
)

// shoot sends the orders and returns them in the order in which they came.
func (c crowd) shoot(ctx context.Context) []shot {
	random := rand.New(rand.NewPCG(c.seed, 0))
	begin := time.Now()
	var all sync.WaitGroup
	var shots []*shot
	fire := func(o order, due time.Time) {
		s := &shot{order: o}
		shots = append(shots, s)
		all.Go(func() {
			s.answer, s.err = c.insist(ctx, o)
			s.took = time.Since(due)
		})
	}
	for due := begin; due.Sub(begin) < c.length && ctx.Err() == nil; {
		due = due.Add(time.Duration(random.ExpFloat64() / c.rate * float64(time.Second)))
		pause(ctx, time.Until(due))
		o := order{
			Request: fmt.Sprintf("request-%d", len(shots)), User: fmt.Sprintf("user-%d", random.IntN(c.users)),
			Quantity: 1,
		}
		fire(o, due)
		if random.Float64() < clickTwice {
			fire(o, due)
		}
	}
	all.Wait()
	done := make([]shot, len(shots))
	for i, s := range shots {
		done[i] = *s
	}
	return done
}

// insist asks until the outcome is known.
func (c crowd) insist(ctx context.Context, o order) (a answer, err error) {
	for range tries {
		once, cancel := context.WithTimeout(ctx, orderTimeout)
		a, err = c.gate.order(once, o)
		cancel()
		if err == nil {
			return a, nil
		}
		pause(ctx, errorPause)
	}
	return a, err
}

// percentile returns the time within which the part of the shots was answered.
func percentile(took []time.Duration, part float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)].Round(10 * time.Microsecond)
}

// byAnswer groups the times by answer. An order without one is "unknown".
func byAnswer(shots []shot) map[answer][]time.Duration {
	groups := map[answer][]time.Duration{}
	for _, s := range shots {
		a := s.answer
		if s.err != nil {
			a = "unknown"
		}
		groups[a] = append(groups[a], s.took)
	}
	return groups
}

// early returns how many of those who got something were among the first that many users to ask.
func early(shots []shot, stock int) (lucky, first int) {
	asked := map[string]bool{}
	for _, s := range shots {
		isFirst := len(asked) < stock && !asked[s.order.User]
		asked[s.order.User] = true
		if s.answer == reserved {
			lucky++
			if isFirst {
				first++
			}
		}
	}
	return lucky, first
}
