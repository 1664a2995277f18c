package main

import (
	"context"
	"errors"
	"fmt"
)

// stocktaking corrects the stock while others sell: 10 are on the shelf, 20 are found in the store, and before the
// correction is entered 5 are sold. What is entered is the difference, +10, so 15 are left. Had 20 been entered, the 5
// that are gone would be for sale again.
func stocktaking(ctx context.Context, p place) (said []string, err error) {
	s, err := p.open()
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.fill(ctx, 10); err != nil {
		return nil, err
	}
	seen, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	for range 5 {
		if err := s.add(ctx, -1); err != nil {
			return nil, err
		}
	}
	if err := s.add(ctx, 20-seen); err != nil {
		return nil, err
	}
	left, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	said = append(said, fmt.Sprintf("10 on the shelf, 20 counted, 5 sold meanwhile; entering +%d leaves %d",
		20-seen, left))
	refusal := s.add(ctx, -16)
	if refusal == nil {
		return said, fmt.Errorf("%s: taking 16 away from %d must be refused, and was not", p.Server, left)
	}
	if !errors.Is(refusal, errTooFew) {
		return said, refusal
	}
	still, err := s.read(ctx)
	if err == nil && (left != 15 || still != 15) {
		err = fmt.Errorf("%s: %d are left and %d after the refusal, not 15 and 15", p.Server, left, still)
	}
	return append(said, fmt.Sprintf("entering -16 is refused (%v), and %d are still there", refusal, still)), err
}
