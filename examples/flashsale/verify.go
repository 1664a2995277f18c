package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
)

// finding is one invariant and what was found.
type finding struct {
	Name  string
	Says  string
	Wrong []string // examples of what contradicts it; nil if it holds
}

// result is what a reconciliation found.
type result struct {
	Item    string
	Initial int
	Left    int // in Redis
	Open    int // items of reservations that are neither confirmed nor released
	Sold    int // items of orders in the database
	Pending int // orders in the queue
	Moving  bool
	Found   []finding
}

// Exit codes of verify.
const (
	verifyFine    = 0
	verifyWrong   = 1
	verifyUnknown = 2
)

func (r *result) exitCode() int {
	for _, f := range r.Found {
		if f.Wrong != nil {
			return verifyWrong
		}
	}
	if r.Moving || r.Open > 0 || r.Pending > 0 {
		return verifyUnknown
	}
	return verifyFine
}

// picture is what Redis says at one instant.
type picture struct {
	left         int
	reservations map[string]reservation
	due          []string
	pending      int
}

// verify compares Redis, the queue and the database. While orders come in it compares what belongs to
// different instants, so it looks at Redis before and after, and says so if that has changed; what it then
// calls wrong may be on its way.
func verify(ctx context.Context, o *office) (*result, error) {
	before, err := look(ctx, o)
	if err != nil {
		return nil, err
	}
	account, err := o.ledger.account(ctx)
	if err != nil {
		return nil, err
	}
	after, err := look(ctx, o)
	if err != nil {
		return nil, err
	}
	r := compare(before, account)
	r.Item = o.Item
	r.Moving = before.left != after.left || before.pending != after.pending ||
		!maps.Equal(before.reservations, after.reservations)
	if r.Moving { // nothing that was found is certain
		for i := range r.Found {
			r.Found[i].Wrong = nil
		}
	}
	return r, nil
}

func look(ctx context.Context, o *office) (p picture, err error) {
	if p.reservations, err = o.stock.reservations(ctx); err != nil {
		return p, err
	}
	if p.left, err = o.stock.left(ctx); err != nil {
		return p, fmt.Errorf("the sale of %s in Redis: %w", o.Item, err)
	}
	if p.due, err = o.stock.dueRequests(ctx); err != nil {
		return p, err
	}
	p.pending, err = o.queue.pending(ctx)
	return p, err
}

// compare checks the six invariants.
func compare(p picture, a account) *result {
	r := &result{Initial: a.initial, Left: p.left, Pending: p.pending}
	confirmed, taken := 0, 0
	perUser := map[string]int{}
	for _, res := range p.reservations {
		switch res.state {
		case isConfirmed:
			confirmed += res.Quantity
		case isReserved, isTaken:
			r.Open += res.Quantity
			if res.state == isTaken {
				taken++
			}
		}
	}
	for _, o := range a.orders {
		r.Sold += o.Quantity
		perUser[o.User] += o.Quantity
	}
	r.find("I1", "no more is sold than there was", r.Sold > a.initial, "%d sold of %d", r.Sold, a.initial)
	r.find("I2", "what is left, reserved and sold is what there was", a.initial != p.left+r.Open+confirmed,
		"%d left + %d open + %d confirmed, not %d", p.left, r.Open, confirmed, a.initial)
	r.pairs(p, a)
	r.find("I4", "nobody has more than is allowed", false, "")
	for user, n := range perUser {
		r.add(n > a.limit, "%s has %d, not at most %d", user, n, a.limit)
	}
	r.find("I5", "every open reservation is in the queue, or will be swept", taken > p.pending,
		"%d are taken by consumers, and %d orders are in the queue", taken, p.pending)
	for request, res := range p.reservations {
		r.add(res.state == isReserved && !slices.Contains(p.due, request),
			"%s is reserved, and nobody will end it", request)
	}
	r.find("I6", "the stock in the database is what is not sold, and not below zero",
		a.number < 0 || a.number != a.initial-r.Sold, "%d, not %d - %d", a.number, a.initial, r.Sold)
	return r
}

// pairs checks that orders and confirmed reservations are the same. An order whose reservation is still taken was
// committed and is about to be confirmed.
func (r *result) pairs(p picture, a account) {
	r.find("I3", "each confirmed reservation is an order, and each order a reservation", false, "")
	for request, res := range p.reservations {
		if res.state == isConfirmed {
			o, found := a.orders[request]
			r.add(!found || o != res.order, "%s is confirmed, and no such order is in the database", request)
		}
	}
	for request, o := range a.orders {
		res := p.reservations[request]
		r.add(res.order != o || res.state != isConfirmed && res.state != isTaken,
			"%s is an order, and its reservation is %q", request, res.state)
	}
}

// find begins an invariant.
func (r *result) find(name, says string, wrong bool, format string, args ...any) {
	r.Found = append(r.Found, finding{Name: name, Says: says})
	r.add(wrong, format, args...)
}

// add notes what contradicts the invariant that was begun last: a few examples are enough.
func (r *result) add(wrong bool, format string, args ...any) {
	f := &r.Found[len(r.Found)-1]
	if wrong && len(f.Wrong) < 5 {
		f.Wrong = append(f.Wrong, fmt.Sprintf(format, args...))
	}
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d at the beginning, %d left, %d open, %d sold; %d orders in the queue\n",
		r.Item, r.Initial, r.Left, r.Open, r.Sold, r.Pending)
	for _, f := range r.Found {
		if f.Wrong == nil {
			fmt.Fprintf(w, "  %s  holds  %s\n", f.Name, f.Says)
			continue
		}
		fmt.Fprintf(w, "  %s  WRONG  %s: %q\n", f.Name, f.Says, f.Wrong)
	}
	switch r.exitCode() {
	case verifyFine:
		fmt.Fprintln(w, "Redis, the queue and the database agree.")
	case verifyUnknown:
		fmt.Fprintln(w, "Orders are under way, so this is not the last word.")
	}
}
